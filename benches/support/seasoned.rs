//! A server as it is after it has run for a while.

use std::path::Path;

use tokio_postgres::NoTls;

use crate::cluster::Cluster;

/// No checkpoint falls into a run; everything else as it comes, flushes included.
const SETTINGS: [&str; 6] = [
    "shared_buffers = '2GB'",
    "min_wal_size = '8GB'",
    "max_wal_size = '16GB'",
    "checkpoint_timeout = '1h'",
    "max_connections = 200",
    "wal_sync_method = fdatasync",
];

/// How many files of its log the server has for use. Each holds 16 MiB.
const FILES: usize = 128;

/// A new server whose log goes to files that were there before. A new file is filled with zeros
/// and flushed first, which stops all that write for as long as some hundred commits take; once
/// two checkpoints have passed, a server uses its old files again.
pub(crate) async fn start(preload: Option<&Path>) -> Cluster {
    let cluster = Cluster::preloaded(&SETTINGS, preload);
    let (client, connection) = tokio_postgres::connect(&cluster.url(), NoTls)
        .await
        .unwrap();
    #[expect(clippy::disallowed_methods, reason = "ends with the client")]
    let connection = tokio::spawn(connection);
    for _ in 0..FILES {
        let sql = "SELECT pg_logical_emit_message(false, 'bench', 'x'), pg_switch_wal()";
        client.batch_execute(sql).await.unwrap();
    }
    client.batch_execute("CHECKPOINT").await.unwrap();
    drop(client);
    connection.await.unwrap().unwrap();
    cluster
}
