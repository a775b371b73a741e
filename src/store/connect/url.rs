//! Reads the scheme and hands the rest on.

use crate::error::Error;
use crate::store::boxed::BoxStore;
use crate::store::connect::memory;
#[cfg(not(feature = "postgres"))]
use crate::store::connect::no_postgres as postgres;
#[cfg(not(feature = "sqlite"))]
use crate::store::connect::no_sqlite as sqlite;
#[cfg(feature = "postgres")]
use crate::store::connect::postgres;
#[cfg(feature = "sqlite")]
use crate::store::connect::sqlite;

/// Opens the store that a URL names.
///
/// | URL | store | feature |
/// | --- | --- | --- |
/// | `memory:` | [`MemoryStore`](crate::store::MemoryStore), with its defaults | |
/// | `sqlite:chat.db`, `sqlite:/var/lib/chat.db` | `SqliteStore`: the path as it stands, not percent-decoded | `sqlite` |
/// | `postgres://user:password@host/database` | `PostgresStore`, without TLS; its tables are made if they are not there | `postgres` |
///
/// Does not block the thread. Dropping the future leaves nothing behind but, perhaps, a new and
/// empty file.
///
/// # Errors
/// [Misconfigured](Error::is_misconfigured) if the scheme is unknown or its feature is off, and
/// whatever the store says when it is opened. No error holds the URL, which may carry a password.
///
/// ```
/// # tokio_test::block_on(async {
/// let store = tower_idempotency::store::connect("memory:").await?;
/// # Ok::<(), tower_idempotency::Error>(())
/// # }).unwrap();
/// ```
pub async fn connect(url: &str) -> Result<BoxStore, Error> {
    match url.split_once(':') {
        Some(("memory", rest)) => memory::open(rest),
        Some(("sqlite", rest)) => sqlite::open(rest).await,
        Some(("postgres" | "postgresql", _)) => postgres::open(url).await,
        Some(_) | None => Err(Error::misconfigured(
            "a store's URL begins with `memory:`, `sqlite:` or `postgres:`",
        )),
    }
}
