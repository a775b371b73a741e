//! The baseline, as it is usually written: one table of jobs, a statement for each message that
//! comes, and workers that take the first job of each conversation with SKIP LOCKED.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
use tokio_postgres::NoTls;
use tower_idempotency::store::Arrival;

use crate::worker::Seen;

pub(crate) const TABLE: &str = "CREATE TABLE jobs (
        channel text COLLATE \"C\", scope text COLLATE \"C\", id text COLLATE \"C\",
        conversation text NOT NULL, seq bigserial, state smallint NOT NULL DEFAULT 0,
        attempts smallint NOT NULL DEFAULT 0, at timestamptz NOT NULL DEFAULT now(),
        lease timestamptz, raw bytea, PRIMARY KEY (channel, scope, id));
    CREATE UNIQUE INDEX ON jobs (seq);
    CREATE INDEX ON jobs (seq) WHERE state = 0;
    CREATE INDEX ON jobs (conversation, seq) WHERE state < 2";

const INSERT: &str = "INSERT INTO jobs (channel, scope, id, conversation, raw) \
    VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING";

const TAKE: &str = "UPDATE jobs SET state = 1, attempts = attempts + 1, \
    lease = now() + interval '30 s' WHERE seq = ANY (ARRAY (SELECT seq FROM jobs j \
    WHERE state = 0 AND NOT EXISTS (SELECT FROM jobs e WHERE e.conversation = j.conversation \
    AND e.seq < j.seq AND e.state < 2) ORDER BY seq LIMIT 64 FOR UPDATE SKIP LOCKED)) \
    RETURNING seq, raw";

const DONE: &str = "UPDATE jobs SET state = 2, raw = NULL WHERE seq = ANY ($1)";

/// The table of jobs, over a pool.
#[derive(Clone)]
pub(crate) struct Jobs {
    pool: Pool,
}

impl Jobs {
    pub(crate) fn open(url: &str) -> Self {
        let config = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let manager = Manager::from_config(url.parse().unwrap(), NoTls, config);
        Self {
            pool: Pool::builder(manager).max_size(32).build().unwrap(),
        }
    }

    /// One INSERT.
    pub(crate) async fn accept(&self, arrival: &Arrival) {
        let client = self.pool.get().await.unwrap();
        let insert = client.prepare_cached(INSERT).await.unwrap();
        let (key, raw) = (&arrival.key, &arrival.raw[..]);
        let conversation = arrival.conversation.as_ref().unwrap().id();
        let texts = (key.channel(), key.scope(), key.id());
        client
            .execute(
                &insert,
                &[&texts.0, &texts.1, &texts.2, &conversation, &raw],
            )
            .await
            .unwrap();
    }

    /// Takes and handles until it is told to stop.
    pub(crate) async fn work(self, seen: Arc<Seen>, stop: Arc<AtomicBool>, idle: Duration) {
        let client = self.pool.get().await.unwrap();
        let take = client.prepare_cached(TAKE).await.unwrap();
        let done = client.prepare_cached(DONE).await.unwrap();
        while !stop.load(Ordering::Relaxed) {
            let rows = client.query(&take, &[]).await.unwrap();
            if rows.is_empty() {
                tokio::time::sleep(idle).await;
                continue;
            }
            let places: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
            for row in &rows {
                seen.note(row.get(1));
            }
            client.execute(&done, &[&places]).await.unwrap();
        }
    }
}
