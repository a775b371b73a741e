//! `sqlite:path`

use tokio::sync::oneshot;

use crate::error::Error;
use crate::store::boxed::BoxStore;
use crate::store::sqlite::store::SqliteStore;
use crate::store::sqlite::thread;

/// Two slashes may stand before the path, as other tools write it. The file is opened on a thread
/// of its own, which ends with that.
pub(super) async fn open(rest: &str) -> Result<BoxStore, Error> {
    let path = rest.strip_prefix("//").unwrap_or(rest).to_owned();
    let (caller, opened) = oneshot::channel();
    thread::start("sqlite-opener", move || {
        // A caller who went away leaves the store to be closed here.
        drop(caller.send(SqliteStore::open(path)));
    })?;
    let store = opened
        .await
        .map_err(|e| Error::unavailable("the thread that opens the file is gone").because(e))?;
    store.map(BoxStore::new)
}
