//! What the server's file says: which messages ran, and which are done.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use rusqlite::Connection;
use tower_idempotency::Key;
use tower_idempotency::store::{Sight, SqliteStore, Store};

/// The runs of one message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Runs {
    pub(crate) begun: u32,
    pub(crate) ended: u32,
}

/// The log of runs that the server's handlers have written, by message.
pub(crate) fn runs(file: &Path) -> HashMap<String, Runs> {
    let log = Connection::open(file).unwrap();
    let mut select = log
        .prepare("SELECT message, count(*), count(ended) FROM app_runs GROUP BY message")
        .unwrap();
    select
        .query_map([], |row| {
            let runs = Runs {
                begun: row.get(1)?,
                ended: row.get(2)?,
            };
            Ok((row.get(0)?, runs))
        })
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

/// Which of some WhatsApp messages, each an account and an id, the store in the file holds a
/// record of.
pub(crate) async fn done(file: &Path, messages: &[(String, String)]) -> HashSet<String> {
    let store = SqliteStore::open(file).unwrap();
    let keys: Vec<Key> = messages
        .iter()
        .map(|(account, id)| Key::new("whatsapp", account, &[id]))
        .collect();
    let sights = store.look(&keys).await.unwrap();
    store.shutdown().await;
    messages
        .iter()
        .zip(sights)
        .filter(|(_, sight)| matches!(sight, Sight::Done(_)))
        .map(|((_, id), _)| id.clone())
        .collect()
}
