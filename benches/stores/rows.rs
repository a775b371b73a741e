//! The baseline: the same work a row at a time, as it is usually written.

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
use tokio_postgres::NoTls;

/// One statement per claim and one per completion, over a pool of 32.
#[derive(Clone)]
pub(crate) struct Rows {
    pool: Pool,
}

const TABLE: &str = "CREATE TABLE rows (
    channel text COLLATE \"C\", scope text COLLATE \"C\", id text COLLATE \"C\",
    state smallint NOT NULL, nonce bigint NOT NULL, claimed timestamptz NOT NULL,
    expires timestamptz NOT NULL, response bytea, PRIMARY KEY (channel, scope, id))";

const CLAIM: &str = "INSERT INTO rows VALUES ('whatsapp', '1065', $1, 0, $2, now(), \
    now() + interval '1 day', NULL) ON CONFLICT DO NOTHING RETURNING nonce";

const COMPLETE: &str = "UPDATE rows SET state = 1, response = $3 WHERE channel = 'whatsapp' AND \
    scope = '1065' AND id = $1 AND nonce = $2 AND state = 0";

const REPLAY: &str = "SELECT state, response FROM rows WHERE channel = 'whatsapp' AND \
    scope = '1065' AND id = $1";

impl Rows {
    pub(crate) async fn open(url: &str) -> Self {
        let config = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let manager = Manager::from_config(url.parse().unwrap(), NoTls, config);
        let pool = Pool::builder(manager).max_size(32).build().unwrap();
        let client = pool.get().await.unwrap();
        client.batch_execute(TABLE).await.unwrap();
        drop(client);
        Self { pool }
    }

    /// Claims and completes one message. No connection is held in between.
    pub(crate) async fn run(&self, id: &str, response: &[u8]) {
        let nonce: i64 = rand::random();
        let client = self.pool.get().await.unwrap();
        let claim = client.prepare_cached(CLAIM).await.unwrap();
        let claimed = client.query(&claim, &[&id, &nonce]).await.unwrap();
        assert_eq!(claimed.len(), 1);
        drop(client);
        let client = self.pool.get().await.unwrap();
        let complete = client.prepare_cached(COMPLETE).await.unwrap();
        let completed = client.execute(&complete, &[&id, &nonce, &response]).await;
        assert_eq!(completed.unwrap(), 1);
    }

    /// Reads the response of a done message.
    pub(crate) async fn replay(&self, id: &str) -> Vec<u8> {
        let client = self.pool.get().await.unwrap();
        let replay = client.prepare_cached(REPLAY).await.unwrap();
        client.query_one(&replay, &[&id]).await.unwrap().get(1)
    }

    /// Removes dead rows from its table, and from the store's: what autovacuum does in time.
    pub(crate) async fn vacuum(&self) {
        let client = self.pool.get().await.unwrap();
        for sql in ["VACUUM ANALYZE rows", "VACUUM ANALYZE idempotency"] {
            client.batch_execute(sql).await.unwrap();
        }
    }

    /// Empties its table, and the store's.
    pub(crate) async fn clear(&self) {
        let client = self.pool.get().await.unwrap();
        let sql = "TRUNCATE rows, idempotency, idempotency_conversation";
        client.batch_execute(sql).await.unwrap();
    }
}
