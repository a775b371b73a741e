//! What a million keys take on the disk and in the log, and what removing them costs the claims
//! beside it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};
use tower_idempotency::Keep;
use tower_idempotency::store::{PostgresStore, Store};

use crate::message;
use crate::options::Options;
use crate::postgres::Bench;
use crate::table::Runs;

/// Fills the tables, prints their sizes, and removes everything beside claims.
pub(crate) fn run(bench: &Bench, options: &Options) {
    let (client, driver) = bench
        .runtime
        .block_on(tokio_postgres::connect(&bench.cluster.url(), NoTls))
        .unwrap();
    bench.runtime.spawn(driver);
    bench
        .runtime
        .block_on(sizes(&bench.store, &client, options.keys));
    purge(bench, &client, options);
}

async fn sizes(store: &PostgresStore, client: &Client, keys: usize) {
    let before = written(client).await;
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..256 {
        let (store, next) = (store.clone(), Arc::clone(&next));
        tasks.spawn(async move {
            let record = message::record();
            // Kept for a moment: what is measured next is their removal.
            let keep = Keep::For(Duration::from_secs(1));
            while next.fetch_add(1, Ordering::Relaxed) < keys {
                message::handle_keeping(&store, &message::id(), Arc::clone(&record), keep).await;
            }
        });
    }
    tasks.join_all().await;
    let log = written(client).await - before;
    println!("\n## {keys} keys with a response of 1 KiB\n");
    println!("| | bytes per key |\n|---|---|");
    println!("| log | {} |", per(log, keys));
    let tables = "SELECT relname::text, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class \
        WHERE relkind = 'r' AND relname = 'idempotency'";
    for row in client.query(tables, &[]).await.unwrap() {
        let name: String = row.get(0);
        println!("| {name}, table | {} |", per(row.get(1), keys));
        println!("| {name}, indexes | {} |", per(row.get(2), keys));
    }
}

async fn written(client: &Client) -> i64 {
    let sql = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint";
    client.query_one(sql, &[]).await.unwrap().get(0)
}

fn per(bytes: i64, keys: usize) -> i64 {
    bytes / i64::try_from(keys).unwrap()
}

fn purge(bench: &Bench, client: &Client, options: &Options) {
    let mut runs = Runs::default();
    let alone = bench.first_by_store(32, options.time);
    runs.push("32 in flight, alone", alone);
    let store = bench.store.clone();
    let purge = bench.runtime.spawn(async move {
        let (began, mut removed) = (Instant::now(), 0);
        loop {
            let step = Instant::now();
            let swept = store.sweep(1000).await.unwrap();
            removed += swept;
            if swept == 0 {
                return (removed, began.elapsed());
            }
            // As the store's own sweeper does.
            tokio::time::sleep(step.elapsed()).await;
        }
    });
    let mut beside = 0;
    while !purge.is_finished() {
        runs.push(
            "32 in flight, beside the purge",
            bench.first_by_store(32, options.time),
        );
        beside += 1;
    }
    let (removed, time) = bench.runtime.block_on(purge).unwrap();
    let left = bench.runtime.block_on(left(client));
    runs.print("claims and completions beside a purge", "alone");
    println!(
        "\n{removed} rows removed in {:.1} s ({beside} runs beside it), {left} ended rows left",
        time.as_secs_f64()
    );
}

async fn left(client: &Client) -> i64 {
    let sql = "SELECT count(*) FROM idempotency WHERE expires < now()";
    client.query_one(sql, &[]).await.unwrap().get(0)
}
