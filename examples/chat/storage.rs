//! What the application itself keeps: messages, orders, dialogues and a log of runs, in tables of
//! its own in the same SQLite file that the idempotency store uses.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use tower_idempotency::BoxError;

use crate::shop::{Answer, Step};

/// The application's tables. A clone is another handle on the same connection.
#[derive(Clone)]
pub(crate) struct Storage(Arc<Mutex<Connection>>);

/// One message of a conversation.
#[derive(Serialize)]
pub(crate) struct Message {
    id: i64,
    conversation: String,
    user: String,
    text: String,
    at: String,
}

/// A message as it is listed.
#[derive(Serialize)]
pub(crate) struct Listed {
    #[serde(flatten)]
    message: Message,
    /// The key under which the reader sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

/// One order of the shop.
#[derive(Serialize)]
pub(crate) struct Order {
    id: i64,
    conversation: String,
    total: String,
    at: String,
}

/// How many rows each table has.
pub(crate) struct Counts {
    pub(crate) runs: i64,
    pub(crate) orders: i64,
    pub(crate) messages: i64,
}

/// Names a run in the log.
pub(crate) struct Run(i64);

impl Storage {
    /// Opens the file, and makes the tables that are not there.
    pub(crate) fn open(path: &Path) -> Result<Self, BoxError> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        // An answered message must survive a loss of power, as its record does.
        connection.pragma_update(None, "synchronous", "full")?;
        connection.execute_batch(TABLES)?;
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    /// Logs that the handler begins with a message.
    pub(crate) async fn begin(&self, message: String) -> Result<Run, BoxError> {
        self.on(move |db| {
            db.execute("INSERT INTO app_runs (message) VALUES (?1)", [message])?;
            Ok(Run(db.last_insert_rowid()))
        })
        .await
    }

    /// Adds a user's message and ends its run.
    pub(crate) async fn add_message(
        &self,
        run: Run,
        conversation: String,
        user: String,
        text: String,
    ) -> Result<Message, BoxError> {
        self.on(move |db| {
            let transaction = db.transaction()?;
            let message = insert_message(&transaction, &conversation, &user, &text)?;
            transaction.execute(
                "INSERT INTO app_keys (message, key) SELECT ?1, message FROM app_runs WHERE id = ?2",
                params![message.id, run.0],
            )?;
            end_run(&transaction, &run)?;
            transaction.commit()?;
            Ok(message)
        })
        .await
    }

    /// The messages of a conversation, oldest first; with their keys where `reader` made them.
    pub(crate) async fn messages(
        &self,
        conversation: String,
        reader: String,
    ) -> Result<Vec<Listed>, BoxError> {
        self.on(move |db| {
            let mut select = db.prepare_cached(
                "SELECT id, conversation, author, text, at, CASE WHEN author = ?2 THEN key END
                 FROM app_messages LEFT JOIN app_keys ON message = id
                 WHERE conversation = ?1 ORDER BY id",
            )?;
            select.query_map([conversation, reader], listed)?.collect()
        })
        .await
    }

    /// Where a customer stands in the shop's dialogue.
    pub(crate) async fn step(&self, conversation: String) -> Result<Step, BoxError> {
        self.on(move |db| {
            let step: Option<String> = db
                .prepare_cached("SELECT step FROM app_dialogues WHERE conversation = ?1")?
                .query_row([conversation], |row| row.get(0))
                .optional()?;
            Ok(Step::named(step.as_deref().unwrap_or_default()))
        })
        .await
    }

    /// Adds the customer's message, does what the bot's answer asks for, and ends the run.
    pub(crate) async fn answer(
        &self,
        run: Run,
        conversation: String,
        text: String,
        answer: Answer,
    ) -> Result<(), BoxError> {
        self.on(move |db| {
            let transaction = db.transaction()?;
            insert_message(&transaction, &conversation, "customer", &text)?;
            insert_message(&transaction, &conversation, "bot", &answer.text)?;
            if let Some(total) = answer.order {
                transaction.execute(
                    "INSERT INTO app_orders (conversation, total) VALUES (?1, ?2)",
                    params![conversation, total],
                )?;
            }
            transaction.execute(
                "INSERT INTO app_dialogues (conversation, step) VALUES (?1, ?2)
                 ON CONFLICT (conversation) DO UPDATE SET step = excluded.step",
                params![conversation, answer.next.name()],
            )?;
            end_run(&transaction, &run)?;
            transaction.commit()
        })
        .await
    }

    /// Ends a run that changed nothing else.
    pub(crate) async fn end(&self, run: Run) -> Result<(), BoxError> {
        self.on(move |db| end_run(db, &run)).await
    }

    /// All orders, oldest first.
    pub(crate) async fn orders(&self) -> Result<Vec<Order>, BoxError> {
        self.on(|db| {
            db.prepare_cached("SELECT id, conversation, total, at FROM app_orders ORDER BY id")?
                .query_map([], |row| {
                    Ok(Order {
                        id: row.get(0)?,
                        conversation: row.get(1)?,
                        total: row.get(2)?,
                        at: row.get(3)?,
                    })
                })?
                .collect()
        })
        .await
    }

    /// The numbers of runs, orders and messages since the file was made.
    pub(crate) async fn counts(&self) -> Result<Counts, BoxError> {
        self.on(|db| {
            db.query_row(
                "SELECT (SELECT count(*) FROM app_runs), (SELECT count(*) FROM app_orders),
                        (SELECT count(*) FROM app_messages)",
                [],
                |row| {
                    Ok(Counts {
                        runs: row.get(0)?,
                        orders: row.get(1)?,
                        messages: row.get(2)?,
                    })
                },
            )
        })
        .await
    }

    /// SQLite blocks, so each call runs on a thread where that harms nobody.
    async fn on<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, BoxError> {
        let connection = Arc::clone(&self.0);
        let call = move || {
            let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            call(&mut connection)
        };
        Ok(tokio::task::spawn_blocking(call).await??)
    }
}

fn insert_message(
    db: &Connection,
    conversation: &str,
    author: &str,
    text: &str,
) -> rusqlite::Result<Message> {
    db.prepare_cached(
        "INSERT INTO app_messages (conversation, author, text) VALUES (?1, ?2, ?3)
         RETURNING id, conversation, author, text, at",
    )?
    .query_row(params![conversation, author, text], message)
}

fn message(row: &Row<'_>) -> rusqlite::Result<Message> {
    Ok(Message {
        id: row.get(0)?,
        conversation: row.get(1)?,
        user: row.get(2)?,
        text: row.get(3)?,
        at: row.get(4)?,
    })
}

fn listed(row: &Row<'_>) -> rusqlite::Result<Listed> {
    Ok(Listed {
        message: message(row)?,
        key: row.get(5)?,
    })
}

fn end_run(db: &Connection, run: &Run) -> rusqlite::Result<()> {
    db.prepare_cached("UPDATE app_runs SET ended = strftime('%FT%H:%M:%fZ') WHERE id = ?1")?
        .execute([run.0])?;
    Ok(())
}

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS app_messages (
    id           INTEGER PRIMARY KEY,
    conversation TEXT NOT NULL,
    author       TEXT NOT NULL,
    text         TEXT NOT NULL,
    at           TEXT NOT NULL DEFAULT (strftime('%FT%H:%M:%fZ'))
);
CREATE INDEX IF NOT EXISTS app_messages_of ON app_messages (conversation, id);
CREATE TABLE IF NOT EXISTS app_keys (
    message INTEGER PRIMARY KEY,
    key     TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS app_orders (
    id           INTEGER PRIMARY KEY,
    conversation TEXT NOT NULL,
    total        TEXT NOT NULL,
    at           TEXT NOT NULL DEFAULT (strftime('%FT%H:%M:%fZ'))
);
CREATE TABLE IF NOT EXISTS app_dialogues (
    conversation TEXT PRIMARY KEY,
    step         TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS app_runs (
    id      INTEGER PRIMARY KEY,
    message TEXT NOT NULL,
    began   TEXT NOT NULL DEFAULT (strftime('%FT%H:%M:%fZ')),
    ended   TEXT
);
";
