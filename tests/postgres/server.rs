//! The server goes away, comes back, or turns read-only: calls fail in bounded time, nothing that
//! was acknowledged is lost, and the same store goes on by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::sleep;
use tower_idempotency::store::{PostgresStore, Settled, Verdict};

use crate::cluster::{Cluster, Stop};
use crate::database::{Schema, client};
use crate::fixture::{open, options};
use crate::hand::{ask, begin, done, is_done, is_running, key, look, settle, until};
use crate::proxy::Proxy;

async fn own() -> (PostgresStore, Cluster, Schema) {
    let cluster = Cluster::start(&[]);
    let schema = Schema::new(&cluster.url());
    let store = open(&cluster.url(), &options(&schema)).await;
    (store, cluster, schema)
}

/// What one caller was told before its call failed.
#[derive(Default)]
struct Told {
    granted: Vec<u64>,
    recorded: Vec<u64>,
}

/// Runs new messages until a call fails.
async fn work(store: PostgresStore, next: Arc<AtomicU64>) -> Told {
    let mut told = Told::default();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Ok(verdict) = ask(&store, &key(number)).await else {
            return told;
        };
        let Verdict::Run(lease) = verdict else {
            panic!("a new key is not run: {verdict:?}");
        };
        told.granted.push(number);
        match settle(&store, &done(lease)).await {
            Ok(settled) => assert_eq!(settled, Settled::Applied),
            Err(_) => return told,
        }
        told.recorded.push(number);
    }
}

/// Field case B74.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_at_once_under_load_loses_nothing_acknowledged() {
    let (store, cluster, _schema) = own().await;
    let next = Arc::new(AtomicU64::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..32 {
        callers.spawn(work(store.clone(), Arc::clone(&next)));
    }
    sleep(Duration::from_millis(700)).await;
    cluster.stop(Stop::Immediate);
    let told = callers.join_all().await;
    let refused = ask(&store, &key("while it is down")).await.unwrap_err();
    assert!(refused.is_retryable(), "{refused:?}");
    cluster.resume();
    begin(&store, &key("the first call afterwards")).await;
    let recorded: Vec<u64> = told.iter().flat_map(|told| told.recorded.clone()).collect();
    assert!(recorded.len() > 50, "only {} messages", recorded.len());
    for number in recorded {
        assert!(is_done(&look(&store, &key(number)).await), "{number}");
    }
    for number in told.iter().flat_map(|told| told.granted.clone()) {
        let sight = look(&store, &key(number)).await;
        assert!(is_done(&sight) || is_running(&sight), "{number}: {sight:?}");
    }
}

/// Field case B74.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_down_is_told_at_once_and_not_waited_for() {
    let (store, cluster, _schema) = own().await;
    begin(&store, &key("before")).await;
    cluster.stop(Stop::Fast);
    let began = Instant::now();
    for number in 0..20 {
        assert!(ask(&store, &key(number)).await.unwrap_err().is_retryable());
    }
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "{:?}",
        began.elapsed()
    );
    cluster.resume();
    begin(&store, &key("after")).await;
}

/// Field case B73.
#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_turned_read_only_is_left_and_found_again() {
    let cluster = Cluster::start(&[]);
    let schema = Schema::new(&cluster.url());
    let proxy = Proxy::before(&cluster.socket());
    let store = open(&proxy.url(), &options(&schema)).await;
    let lease = begin(&store, &key("before")).await;
    let before = proxy.accepted();
    set_read_only(&cluster, "on").await;
    let refused = until("writes are refused", async || {
        ask(&store, &key("during")).await.err()
    });
    let refused = refused.await;
    assert!(refused.is_retryable(), "{refused:?}");
    assert!(
        settle(&store, &done(lease))
            .await
            .unwrap_err()
            .is_retryable()
    );
    assert!(proxy.accepted() > before, "the old connection was kept");
    set_read_only(&cluster, "off").await;
    until("writes are taken", async || {
        ask(&store, &key("after")).await.ok()
    })
    .await;
}

async fn set_read_only(cluster: &Cluster, value: &str) {
    let client = client(&cluster.url()).await;
    let set = format!(
        "SET default_transaction_read_only = off; ALTER SYSTEM SET default_transaction_read_only = {value}"
    );
    for sql in set.split("; ").chain(["SELECT pg_reload_conf()"]) {
        client.batch_execute(sql).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_are_waited_for_where_the_server_would_not() {
    let lazy = [
        "synchronous_commit = off",
        "wal_writer_delay = '10s'",
        "fsync = on",
    ];
    let cluster = Cluster::start(&lazy);
    let schema = Schema::new(&cluster.url());
    let store = open(&cluster.url(), &options(&schema)).await;
    let other = client(&cluster.url()).await;
    other
        .batch_execute("CREATE TABLE lost (number int)")
        .await
        .unwrap();
    let end = done(begin(&store, &key("done")).await);
    settle(&store, &end).await.unwrap();
    begin(&store, &key("running")).await;
    // The server does lose what nobody waited for, unless its log happens to be written out at that
    // very moment, as it is every ten seconds.
    let mut has_lost = false;
    for number in 0..5 {
        let other = client(&cluster.url()).await;
        let insert = format!("INSERT INTO lost VALUES ({number})");
        other.batch_execute(&insert).await.unwrap();
        cluster.stop(Stop::Immediate);
        cluster.resume();
        assert!(is_done(&look(&store, &key("done")).await));
        assert!(is_running(&look(&store, &key("running")).await));
        let other = client(&cluster.url()).await;
        let left = format!("SELECT FROM lost WHERE number = {number}");
        has_lost = other.query(&left, &[]).await.unwrap().is_empty();
        if has_lost {
            break;
        }
    }
    assert!(has_lost, "it loses nothing");
}
