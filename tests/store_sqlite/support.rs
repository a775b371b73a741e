//! A file of its own for each test, and short words for what all tests do.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use rusqlite::Connection;
use tempfile::TempDir;
use tokio::task::{JoinHandle, spawn};
use tokio::time::{sleep, timeout};
use tower_idempotency::store::{
    Claim, Lease, Nonce, Settled, Sight, SqliteOptions, SqliteStore, Store, Verdict, Wanted,
};
use tower_idempotency::{Conversation, Error, Keep, Key, Payload, Record, Whole};

pub(crate) const LEASE: Duration = Duration::from_mins(1);
pub(crate) const DAY: Keep = Keep::For(Duration::from_hours(24));

/// A database file in a folder of its own.
pub(crate) struct File {
    folder: TempDir,
}

impl File {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("chat.db")
    }

    pub(crate) fn log_path(&self) -> PathBuf {
        self.folder.path().join("chat.db-wal")
    }

    /// A store that does nothing by itself.
    pub(crate) fn open(&self) -> SqliteStore {
        self.open_with(&SqliteOptions::new().without_sweeper())
    }

    pub(crate) fn open_with(&self, options: &SqliteOptions) -> SqliteStore {
        SqliteStore::with_options(self.path(), options).unwrap()
    }

    /// A connection beside the store's.
    pub(crate) fn connection(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }

    pub(crate) fn sql(&self, sql: &str) {
        self.connection().execute_batch(sql).unwrap();
    }

    pub(crate) fn count(&self, sql: &str) -> i64 {
        self.connection()
            .query_row(sql, [], |row| row.get(0))
            .unwrap()
    }

    /// Takes the file's write lock, as another process would. Dropping the connection gives it
    /// back.
    pub(crate) fn lock(&self) -> Connection {
        let connection = self.connection();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        connection
    }

    /// How many commits the log holds: a frame that ends one says how many pages the file then
    /// has. <https://sqlite.org/fileformat2.html#the_write_ahead_log>
    pub(crate) fn commits(&self) -> usize {
        const HEADER: usize = 32;
        const FRAME: usize = 24 + 4096;
        let log = fs::read(self.log_path()).unwrap();
        let frames = log[HEADER..].chunks_exact(FRAME);
        frames.filter(|frame| frame[4..8] != [0; 4]).count()
    }
}

pub(crate) fn key(id: &str) -> Key {
    Key::new("web", "alice", &[id])
}

pub(crate) fn claim_of(ids: &[&str]) -> Claim {
    let wanted = ids.iter().map(|id| Wanted::new(key(id)));
    Claim::new(Nonce::random(), LEASE, wanted.collect())
}

/// A whole record whose body is `body`.
pub(crate) fn record_of(body: impl Into<Vec<u8>>) -> Arc<Record> {
    let whole = Whole {
        frames: vec![body.into().into()],
        trailers: None,
        sized: true,
    };
    Arc::new(Record::new(StatusCode::CREATED, HeaderMap::new(), whole))
}

pub(crate) fn body_of(record: &Record) -> Vec<u8> {
    let Payload::Whole(whole) = record.payload() else {
        panic!("no whole body: {record:?}")
    };
    whole.frames.concat()
}

/// Claims a key that nobody else has.
pub(crate) async fn run(store: &impl Store, id: &str) -> Lease {
    match store.claim(&claim_of(&[id])).await.unwrap().pop() {
        Some(Verdict::Run(lease)) => lease,
        other => panic!("{id} is not to be run: {other:?}"),
    }
}

/// Claims a key that nobody else has, and leaves it running.
pub(crate) async fn begin(store: &impl Store, id: &str) {
    drop(run(store, id).await);
}

/// Claims a key and records its own id.
pub(crate) async fn finish(store: &impl Store, id: &str, keep: Keep) {
    let lease = run(store, id).await;
    let settled = store.settle(&[lease.record(record_of(id), keep)]).await;
    assert_eq!(settled.unwrap(), [Settled::Applied]);
}

pub(crate) async fn look(store: &impl Store, id: &str) -> Sight {
    store.look(&[key(id)]).await.unwrap().remove(0)
}

pub(crate) async fn is_absent(store: &impl Store, id: &str) -> bool {
    matches!(look(store, id).await, Sight::Absent)
}

/// A claim that is under way.
pub(crate) type Claiming = JoinHandle<Result<Vec<Verdict>, Error>>;

/// Sends a claim and does not wait for its answer.
pub(crate) fn claiming(store: &SqliteStore, ids: &[&str]) -> Claiming {
    let (store, claim) = (store.clone(), claim_of(ids));
    spawn(async move { store.claim(&claim).await })
}

pub(crate) fn is_run(verdicts: &[Verdict]) -> bool {
    verdicts.iter().all(|v| matches!(v, Verdict::Run(_)))
}

/// Claims and records so many messages of one conversation in two calls.
pub(crate) async fn finish_many(store: &SqliteStore, name: &str, count: u32, keep: Keep) {
    let conversation = Conversation::new("web", "alice", name);
    let wanted = (0..count).map(|i| {
        let wanted = Wanted::new(key(&format!("{name}-{i}")));
        wanted.conversation(conversation.clone())
    });
    let claim = Claim::new(Nonce::random(), LEASE, wanted.collect());
    let verdicts = store.claim(&claim).await.unwrap();
    let ends = verdicts.into_iter().map(|verdict| {
        let Verdict::Run(lease) = verdict else {
            panic!("not to be run: {verdict:?}")
        };
        lease.record(record_of(vec![7; 512]), keep)
    });
    let settled = store.settle(&ends.collect::<Vec<_>>()).await.unwrap();
    assert!(settled.iter().all(|s| *s == Settled::Applied));
}

/// Waits until something has happened, by the store's own clock.
#[expect(clippy::future_not_send, reason = "it is awaited where it is made")]
pub(crate) async fn eventually(happened: impl AsyncFn() -> bool) {
    let wait = async {
        while !happened().await {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(30), wait).await.unwrap();
}
