//! A store with tables of the application beside it, and handlers that write there.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use tempfile::TempDir;
use tower::ServiceExt;
use tower_idempotency::channel::{IdempotencyKey, Scope};
use tower_idempotency::store::{
    BoxStore, PostgresOptions, PostgresStore, Queue, SqliteOptions, SqliteStore,
};
use tower_idempotency::{Claimed, Error, IdempotencyLayer};

use crate::database::{Schema, client, url};

/// A store, and where the application's tables are.
#[derive(Clone)]
pub(crate) struct Side {
    pub(crate) store: BoxStore,
    pub(crate) tables: Tables,
    _keeps: Arc<Keeps>,
}

/// Where the application's tables are.
#[derive(Clone)]
pub(crate) enum Tables {
    /// The schema.
    Postgres(String),
    /// The file.
    Sqlite(std::path::PathBuf),
}

/// Removed with the side.
struct Keeps {
    _schema: Option<Schema>,
    _folder: Option<TempDir>,
}

const MAKE: &str = "
CREATE TABLE {s}messages (text text NOT NULL);
CREATE TABLE {s}counter (unread integer NOT NULL);
INSERT INTO {s}counter VALUES (0);";

impl Side {
    pub(crate) async fn postgres() -> Self {
        let schema = Schema::new(&url());
        let options = PostgresOptions::with_table(&schema.table()).unwrap();
        let store = PostgresStore::connect_with(&url(), &options).await.unwrap();
        store.migrate().await.unwrap();
        let name = schema.table().split('.').next().unwrap().to_owned();
        make_in(&url(), &name).await;
        Self {
            store: BoxStore::new(store),
            tables: Tables::Postgres(name),
            _keeps: Arc::new(Keeps {
                _schema: Some(schema),
                _folder: None,
            }),
        }
    }

    pub(crate) async fn sqlite() -> Self {
        Self::sqlite_with(&SqliteOptions::new()).await
    }

    #[expect(clippy::unused_async, reason = "as its sibling")]
    pub(crate) async fn sqlite_with(options: &SqliteOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chat.db");
        let store = SqliteStore::with_options(&path, options).unwrap();
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch(&MAKE.replace("{s}", "")).unwrap();
        Self {
            store: BoxStore::new(store),
            tables: Tables::Sqlite(path),
            _keeps: Arc::new(Keeps {
                _schema: None,
                _folder: Some(folder),
            }),
        }
    }

    /// Messages and unread counter.
    pub(crate) async fn written(&self) -> (i64, i64) {
        self.tables.written().await
    }

    /// How many effects wait.
    pub(crate) async fn effects(&self) -> u64 {
        let outbox = self.store.outbox().unwrap();
        outbox.backlog().await.unwrap().waiting
    }

    /// A layer whose keys are Ann's.
    pub(crate) fn layer(&self) -> IdempotencyLayer<BoxStore, IdempotencyKey> {
        let channel = IdempotencyKey::scoped_by(Scope::header("x-user"));
        IdempotencyLayer::new(self.store.clone(), channel)
    }
}

/// Makes the application's tables in a schema.
pub(crate) async fn make_in(url: &str, schema: &str) {
    let sql = MAKE.replace("{s}", &format!("{schema}."));
    client(url).await.batch_execute(&sql).await.unwrap();
}

impl Tables {
    /// A message and its place in the counter.
    pub(crate) async fn write(&self, claimed: &Claimed, text: &str) -> Result<(), Error> {
        match self {
            Self::Postgres(schema) => {
                let transaction = claimed.transaction().await?;
                let insert = format!("INSERT INTO {schema}.messages VALUES ($1)");
                let count = format!("UPDATE {schema}.counter SET unread = unread + 1");
                let failed = |e| Error::rejected("it cannot be written").because(e);
                transaction
                    .execute(&insert, &[&text])
                    .await
                    .map_err(failed)?;
                transaction.execute(&count, &[]).await.map_err(failed)?;
            }
            Self::Sqlite(_) => {
                let text = text.to_owned();
                let work = |connection: &rusqlite::Connection| {
                    connection.execute("INSERT INTO messages VALUES (?1)", [text])?;
                    connection.execute("UPDATE counter SET unread = unread + 1", [])
                };
                claimed.in_transaction(work).await?;
            }
        }
        Ok(())
    }

    /// Runs a statement in the handler's transaction, whatever comes of it.
    pub(crate) async fn swallow(&self, claimed: &Claimed, sql: &'static str) {
        match self {
            Self::Postgres(_) => {
                let transaction = claimed.transaction().await.unwrap();
                drop(transaction.batch_execute(sql).await);
            }
            Self::Sqlite(_) => {
                drop(claimed.in_transaction(move |c| c.execute_batch(sql)).await);
            }
        }
    }

    /// How many connections to these tables lie idle with a transaction open.
    pub(crate) async fn open_transactions(&self) -> i64 {
        let Self::Postgres(schema) = self else {
            return 0;
        };
        let open = "SELECT count(*) FROM pg_stat_activity \
                    WHERE state LIKE 'idle in transaction%' AND query LIKE '%' || $1 || '%'";
        let row = client(&url()).await.query_one(open, &[schema]).await;
        row.unwrap().get(0)
    }

    pub(crate) async fn written(&self) -> (i64, i64) {
        let sql = "SELECT (SELECT count(*) FROM {s}messages), (SELECT unread FROM {s}counter)";
        match self {
            Self::Postgres(schema) => {
                let sql = sql.replace("{s}", &format!("{schema}."));
                let row = client(&url()).await.query_one(&sql, &[]).await.unwrap();
                (row.get(0), row.get::<_, i32>(1).into())
            }
            Self::Sqlite(path) => {
                let connection = rusqlite::Connection::open(path).unwrap();
                let sql = sql.replace("{s}", "");
                let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
                connection.query_row(&sql, [], read).unwrap()
            }
        }
    }
}

/// What an answer was.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) status: StatusCode,
    pub(crate) is_replay: bool,
    pub(crate) body: String,
}

/// Sends a message of Ann's.
pub(crate) async fn send(app: &Router, key: &str) -> Got {
    let request = Request::post("/messages")
        .header("idempotency-key", key)
        .header("x-user", "ann")
        .body(Body::from("hello"))
        .unwrap();
    let response = app.clone().oneshot(request).await.unwrap();
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Got {
        status: head.status,
        is_replay: head.headers.contains_key("idempotency-replayed"),
        body: String::from_utf8(body.to_vec()).unwrap(),
    }
}

/// The same test on both stores.
macro_rules! on_both {
    ($($(#[$doc:meta])* $name:ident)+) => {
        mod on_postgresql {
            use crate::side::Side;
            $($(#[$doc])* #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name(Side::postgres().await).await; })+
        }
        mod on_sqlite {
            use crate::side::Side;
            $($(#[$doc])* #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name(Side::sqlite().await).await; })+
        }
    };
}
pub(crate) use on_both;

/// What a handler does on each of its runs, in order; the last one stays.
#[derive(Clone)]
pub(crate) struct Runs<T>(Arc<Mutex<(usize, Vec<T>)>>);

impl<T: Clone> Runs<T> {
    pub(crate) fn new(each: impl Into<Vec<T>>) -> Self {
        Self(Arc::new(Mutex::new((0, each.into()))))
    }

    pub(crate) fn next(&self) -> T {
        let mut runs = self.0.lock().unwrap();
        let at = runs.0.min(runs.1.len() - 1);
        runs.0 += 1;
        runs.1.get(at).cloned().unwrap()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap().0
    }
}
