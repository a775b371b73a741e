//! The server, and what it writes.

use tokio_postgres::{Client, NoTls};
use tower_idempotency::store::PostgresStore;

use crate::cluster::Cluster;
use crate::jobs;
use crate::seasoned;

pub(crate) struct Server {
    pub(crate) cluster: Cluster,
    client: Client,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let cluster = seasoned::start(None).await;
        let store = PostgresStore::connect(&cluster.url()).await.unwrap();
        store.migrate().await.unwrap();
        let client = connect(&cluster.url()).await;
        client.batch_execute(jobs::TABLE).await.unwrap();
        Self { cluster, client }
    }

    pub(crate) fn url(&self) -> String {
        self.cluster.url()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.cluster.pid()
    }

    /// Empties all tables.
    pub(crate) async fn clear(&self) {
        let sql = "TRUNCATE jobs, idempotency_seen, idempotency_life, idempotency_line, \
            idempotency_message, idempotency_dead";
        self.client.batch_execute(sql).await.unwrap();
    }

    pub(crate) async fn run(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap();
    }

    /// A number that a statement gives.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.client.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// How many bytes of log were written so far.
    pub(crate) async fn log(&self) -> i64 {
        let sql = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint";
        self.number(sql).await
    }

    /// Each of the inbox's tables with its size, and that of its indexes.
    pub(crate) async fn sizes(&self) -> Vec<(String, i64, i64)> {
        let sql = "SELECT relname::text, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class \
            WHERE relkind = 'r' AND relname ~ '^idempotency_(seen|life|line|message)$'";
        let rows = self.client.query(sql, &[]).await.unwrap();
        let size = |row: &tokio_postgres::Row| (row.get(0), row.get(1), row.get(2));
        rows.iter().map(size).collect()
    }
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    #[expect(clippy::disallowed_methods, reason = "ends with the client")]
    tokio::spawn(connection);
    client
}
