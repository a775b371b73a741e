//! Overlapping batches in opposite order: no deadlock reaches a caller.

use tokio::task::JoinSet;
use tower_idempotency::store::{Claim, Lease, Nonce, Settled, Store, Verdict, Wanted};

use crate::database::{self, Schema};
use crate::fixture::{fresh, open, options};
use crate::hand::{SHORT, begin, done, key, until};

#[tokio::test(flavor = "multi_thread")]
async fn batches_of_two_processes_in_opposite_order_all_end() {
    let url = database::url();
    let schema = Schema::new(&url);
    let stores = [
        open(&url, &options(&schema)).await,
        open(&url, &options(&schema)).await,
    ];
    let mut calls = JoinSet::new();
    for number in 0..200 {
        let store = stores[number % 2].clone();
        let mut keys: Vec<_> = (0..20).map(|at| key((number / 10 + at) % 40)).collect();
        if number % 2 == 0 {
            keys.reverse();
        }
        calls.spawn(async move {
            let wanted = keys.into_iter().map(Wanted::new).collect();
            let claim = Claim::new(Nonce::random(), SHORT, wanted);
            let verdicts = store.claim(&claim).await.unwrap();
            let granted = verdicts.into_iter().filter_map(|verdict| match verdict {
                Verdict::Run(lease) => Some(lease),
                _ => None,
            });
            let ends: Vec<_> = granted.map(Lease::release).collect();
            store.settle(&ends).await.unwrap();
        });
    }
    calls.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_victim_of_a_deadlock_is_sent_again() {
    let (store, schema) = fresh().await;
    let (a, b) = (
        begin(&store, &key("a")).await,
        begin(&store, &key("b")).await,
    );
    let table = schema.table();
    let mut other = database::client(&database::url()).await;
    let transaction = other.transaction().await.unwrap();
    // The store locks rows in the order of their keys: the other takes the later one first.
    let rows = format!("SELECT id FROM {table} ORDER BY key");
    let rows = transaction.query(&rows, &[]).await.unwrap();
    let ids: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let lock = |id: &str| format!("SELECT FROM {table} WHERE id = '{id}' FOR UPDATE");
    transaction
        .batch_execute("SET LOCAL deadlock_timeout = '1min'")
        .await
        .unwrap();
    transaction.batch_execute(&lock(&ids[1])).await.unwrap();
    let ends = [done(a), done(b)];
    let mut settled = {
        let store = store.clone();
        JoinSet::from_iter([async move { store.settle(&ends).await }])
    };
    until("the store waits for the row", async || {
        let waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
            AND query LIKE '%' || $1 || '%_settle%'";
        let client = database::client(&database::url()).await;
        let schema = table.split('.').next().unwrap();
        let rows = client.query(waiting, &[&schema]).await.unwrap();
        (!rows.is_empty()).then_some(())
    })
    .await;
    transaction.batch_execute(&lock(&ids[0])).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(
        settled.join_next().await.unwrap().unwrap().unwrap(),
        [Settled::Applied; 2]
    );
}
