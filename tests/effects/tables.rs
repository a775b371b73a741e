//! The tables of the chat server: messages, an unread counter, and whom it notified.

use std::path::PathBuf;

use tokio_postgres::Client;
use tower_idempotency::{Claimed, Error};

use crate::database::client;

const MAKE: &str = "
CREATE TABLE IF NOT EXISTS messages (key text NOT NULL);
CREATE TABLE IF NOT EXISTS counter (unread integer NOT NULL);
CREATE TABLE IF NOT EXISTS notified (key text NOT NULL);";

const WRITE: &str = "INSERT INTO messages VALUES ($1)";
const COUNT: &str = "UPDATE counter SET unread = unread + 1";
const NOTIFY: &str = "INSERT INTO notified VALUES ($1)";

/// All messages, all different ones, the counter, all notifications, all different ones.
pub(crate) type Sums = [i64; 5];

const SUMS: &str = "SELECT (SELECT count(*) FROM messages),
    (SELECT count(DISTINCT key) FROM messages), (SELECT unread FROM counter) + 0,
    (SELECT count(*) FROM notified), (SELECT count(DISTINCT key) FROM notified)";

/// The tables, in the store's own database.
pub(crate) enum Chat {
    Postgres(String),
    Sqlite(PathBuf),
}

impl Chat {
    pub(crate) fn open(url: &str) -> Self {
        match url.strip_prefix("sqlite:") {
            Some(path) => Self::Sqlite(path.into()),
            None => Self::Postgres(url.to_owned()),
        }
    }

    pub(crate) async fn make(&self) {
        let sql = format!("{MAKE} INSERT INTO counter VALUES (0);");
        match self {
            Self::Postgres(url) => client(url).await.batch_execute(&sql).await.unwrap(),
            Self::Sqlite(path) => file(path).execute_batch(&sql).unwrap(),
        }
    }

    pub(crate) async fn write(&self, claimed: &Claimed, key: &str) -> Result<(), Error> {
        match self {
            Self::Postgres(_) => {
                let transaction = claimed.transaction().await?;
                transaction.execute(WRITE, &[&key]).await.map_err(of_sql)?;
                transaction.execute(COUNT, &[]).await.map_err(of_sql)?;
            }
            Self::Sqlite(_) => {
                let key = key.to_owned();
                let written = claimed.in_transaction(|c| {
                    c.execute(WRITE, [key])?;
                    c.execute(COUNT, [])
                });
                written.await?;
            }
        }
        Ok(())
    }

    pub(crate) async fn notify(&self, claimed: &Claimed, key: &str) -> Result<(), Error> {
        match self {
            Self::Postgres(_) => {
                let transaction = claimed.transaction().await?;
                transaction.execute(NOTIFY, &[&key]).await.map_err(of_sql)?;
            }
            Self::Sqlite(_) => {
                let key = key.to_owned();
                claimed.in_transaction(|c| c.execute(NOTIFY, [key])).await?;
            }
        }
        Ok(())
    }

    /// As [`write`](Self::write), in a transaction that the layer knows nothing of.
    pub(crate) async fn write_apart(&self, key: &str) -> Result<(), Error> {
        match self {
            Self::Postgres(url) => {
                let client = apart(url).await?;
                let sql = format!("BEGIN; INSERT INTO messages VALUES ('{key}'); {COUNT}; COMMIT");
                client.batch_execute(&sql).await.map_err(of_sql)
            }
            Self::Sqlite(path) => {
                let sql = format!("BEGIN; INSERT INTO messages VALUES ('{key}'); {COUNT}; COMMIT");
                file(path).execute_batch(&sql).map_err(of_sql)
            }
        }
    }

    /// As [`notify`](Self::notify), right in the handler.
    pub(crate) async fn notify_apart(&self, key: &str) -> Result<(), Error> {
        let sql = format!("INSERT INTO notified VALUES ('{key}')");
        match self {
            Self::Postgres(url) => {
                let client = apart(url).await?;
                client.batch_execute(&sql).await.map_err(of_sql)
            }
            Self::Sqlite(path) => file(path).execute_batch(&sql).map_err(of_sql),
        }
    }

    pub(crate) async fn sums(&self) -> Sums {
        match self {
            Self::Postgres(url) => {
                let row = client(url).await.query_one(SUMS, &[]).await.unwrap();
                [
                    row.get(0),
                    row.get(1),
                    row.get::<_, i32>(2).into(),
                    row.get(3),
                    row.get(4),
                ]
            }
            Self::Sqlite(path) => {
                let read = |row: &rusqlite::Row<'_>| {
                    Ok([
                        row.get(0)?,
                        row.get(1)?,
                        row.get(2)?,
                        row.get(3)?,
                        row.get(4)?,
                    ])
                };
                file(path).query_row(SUMS, [], read).unwrap()
            }
        }
    }
}

fn of_sql(cause: impl Into<tower_idempotency::BoxError>) -> Error {
    Error::unavailable("a statement failed").because(cause)
}

/// A connection past the store, which may not be there.
async fn apart(url: &str) -> Result<Client, Error> {
    let connected = tokio_postgres::connect(url, tokio_postgres::NoTls).await;
    let (client, connection) = connected.map_err(of_sql)?;
    tokio::spawn(connection);
    Ok(client)
}

fn file(path: &PathBuf) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection
        .busy_timeout(std::time::Duration::from_secs(30))
        .unwrap();
    connection
}
