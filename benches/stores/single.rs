//! The baseline of the store in one file: the same table, the same settings, the same way to the
//! thread that writes, and a transaction for each call.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rusqlite::{Connection, params};
use tokio::sync::oneshot;
use tower_idempotency::Key;
use tower_idempotency::store::{Nonce, SqliteStore};

/// Claims and records one by one.
#[derive(Clone)]
pub(crate) struct Single {
    calls: Sender<Call>,
}

struct Call {
    key: Key,
    work: Work,
    caller: oneshot::Sender<()>,
}

enum Work {
    Claim,
    Record(Vec<u8>),
}

impl Single {
    pub(crate) fn open(path: &Path) -> Self {
        // Makes the tables.
        drop(SqliteStore::open(path).unwrap());
        let connection = Connection::open(path).unwrap();
        connection.execute_batch(SETTINGS).unwrap();
        let (calls, waiting) = channel();
        thread::spawn(move || serve(&connection, waiting));
        Self { calls }
    }

    pub(crate) async fn claim(&self, key: Key) {
        self.call(key, Work::Claim).await;
    }

    pub(crate) async fn record(&self, key: Key, record: Vec<u8>) {
        self.call(key, Work::Record(record)).await;
    }

    async fn call(&self, key: Key, work: Work) {
        let (caller, reply) = oneshot::channel();
        self.calls.send(Call { key, work, caller }).unwrap();
        reply.await.unwrap();
    }
}

fn serve(connection: &Connection, calls: Receiver<Call>) {
    let mut token = 0;
    for call in calls {
        token += 1;
        assert_eq!(carry_out(connection, &call, token).unwrap(), 1);
        call.caller.send(()).unwrap();
    }
}

fn carry_out(connection: &Connection, call: &Call, token: i64) -> rusqlite::Result<usize> {
    let run = |sql| connection.prepare_cached(sql)?.execute([]);
    let (key, digest) = (&call.key, call.key.digest());
    run("BEGIN IMMEDIATE")?;
    let changed = match &call.work {
        Work::Claim => {
            let mut next = connection.prepare_cached(NEXT)?;
            next.execute([token])?;
            let names = (key.channel(), key.scope(), key.id());
            let nonce = Nonce::random();
            connection.prepare_cached(CLAIM)?.execute(params![
                &digest[..16],
                names.0,
                names.1,
                names.2,
                token,
                nonce.as_bytes(),
            ])
        }
        Work::Record(record) => {
            let mut statement = connection.prepare_cached(RECORD)?;
            statement.execute(params![&digest[..16], record])
        }
    };
    run("COMMIT")?;
    changed
}

const SETTINGS: &str = "
PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -16384;";

const NEXT: &str = "UPDATE idempotency_sequence SET last = ?1";

const CLAIM: &str = "
INSERT INTO idempotency_claims
    (key, channel, scope, id, state, attempt, token, nonce, claimed_at, leased_until)
VALUES (?1, ?2, ?3, ?4, 'running', 1, ?5, ?6, 0, 30000)
ON CONFLICT (key) DO NOTHING";

const RECORD: &str = "
UPDATE idempotency_claims SET state = 'done', record = ?2, done_at = 0, expires_at = 4102444800000
WHERE key = ?1 AND state = 'running'";
