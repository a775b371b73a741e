//! Calls that are given up, and pools that are too small: no connection is handed on in the middle
//! of something, none is held for longer than a call, and what was given up does not come later.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
use tokio::task::JoinSet;
use tokio_postgres::NoTls;
use tokio_postgres::error::SqlState;
use tower_idempotency::store::{Claim, Nonce, PostgresStore, Settled, Sight, Store, Verdict};

use crate::database::{self, Schema};
use crate::fixture::{fresh, open, options};
use crate::hand::{SHORT, ask, begin, claim_of, done, granted, key, look, settle, until};

fn pool_of(size: usize) -> Pool {
    let config = ManagerConfig {
        recycling_method: RecyclingMethod::Fast,
    };
    let manager = Manager::from_config(database::url().parse().unwrap(), NoTls, config);
    Pool::builder(manager).max_size(size).build().unwrap()
}

/// A store on a pool that the test has a hand on.
async fn on(pool: &Pool, limit: Duration) -> (PostgresStore, Schema) {
    let schema = Schema::new(&database::url());
    let store = PostgresStore::from_pool_with(pool.clone(), &options(&schema).limit(limit));
    store.migrate().await.unwrap();
    (store, schema)
}

/// Polls a future so many times, and drops it. Gives what it ended with, if it ended.
async fn give_up<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|cx| {
        let Some(fewer) = left.checked_sub(1) else {
            return Poll::Ready(None);
        };
        left = fewer;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// The pool's one connection is in no transaction: savepoints are for transactions only.
async fn is_clean(pool: &Pool) {
    let client = pool.get().await.unwrap();
    let refused = client.batch_execute("SAVEPOINT inside").await.unwrap_err();
    assert_eq!(refused.code(), Some(&SqlState::NO_ACTIVE_SQL_TRANSACTION));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_given_up_after_any_number_of_polls_leaves_its_connection_to_others() {
    let pool = pool_of(1);
    let (store, _schema) = on(&pool, Duration::from_secs(5)).await;
    for polls in 0.. {
        let claim = claim_of(&[key(polls)]);
        let ended = give_up(polls, store.claim(&claim)).await;
        is_clean(&pool).await;
        drop(granted(store.claim(&claim).await.unwrap().pop().unwrap()));
        if ended.is_some() {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_given_up_after_any_number_of_polls_leaves_its_connection_to_others() {
    let pool = pool_of(1);
    let (store, _schema) = on(&pool, Duration::from_secs(5)).await;
    for polls in 0.. {
        let ends = [done(begin(&store, &key(polls)).await)];
        let ended = give_up(polls, store.settle(&ends)).await;
        is_clean(&pool).await;
        assert_eq!(store.settle(&ends).await.unwrap(), [Settled::Applied]);
        if ended.is_some() {
            break;
        }
    }
}

/// Field case B71.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_pool_is_waited_for_no_longer_than_the_limit() {
    let pool = pool_of(1);
    let limit = Duration::from_millis(500);
    let (store, _schema) = on(&pool, limit).await;
    let held = pool.get().await.unwrap();
    let began = Instant::now();
    let mut calls = JoinSet::new();
    for number in 0..50 {
        let store = store.clone();
        calls.spawn(async move { ask(&store, &key(number)).await.unwrap_err() });
    }
    for error in calls.join_all().await {
        assert!(error.is_retryable(), "{error:?}");
    }
    assert!(began.elapsed() < limit * 8, "{:?}", began.elapsed());
    drop(held);
    begin(&store, &key("afterwards")).await;
    for number in 0..50 {
        let sight = look(&store, &key(number)).await;
        assert!(
            matches!(sight, Sight::Absent),
            "{number} came later: {sight:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_leaves_the_line_is_not_served_and_harms_nobody() {
    let pool = pool_of(1);
    let (store, _schema) = on(&pool, Duration::from_secs(20)).await;
    let held = pool.get().await.unwrap();
    let mut calls = JoinSet::new();
    for number in 0..20 {
        let store = store.clone();
        calls.spawn(async move { ask(&store, &key(number)).await.map(granted) });
    }
    let left = claim_of(&[key("left")]);
    assert!(give_up(1, store.claim(&left)).await.is_none());
    drop(held);
    for lease in calls.join_all().await {
        assert_eq!(lease.unwrap().attempt(), 1);
    }
    assert!(matches!(look(&store, &key("left")).await, Sight::Absent));
}

/// Field cases B76, P58, P71.
#[tokio::test(flavor = "multi_thread")]
async fn a_pool_that_handlers_use_as_well_serves_both() {
    let pool = pool_of(4);
    let (store, _schema) = on(&pool, Duration::from_secs(20)).await;
    let mut requests = JoinSet::new();
    for number in 0..40 {
        let (store, pool) = (store.clone(), pool.clone());
        requests.spawn(async move {
            let lease = begin(&store, &key(number)).await;
            let client = pool.get().await.unwrap();
            client.execute("SELECT pg_sleep(0.02)", &[]).await.unwrap();
            drop(client);
            settle(&store, &done(lease)).await.unwrap()
        });
    }
    for settled in requests.join_all().await {
        assert_eq!(settled, Settled::Applied);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_somebody_holds_fails_its_own_settlement_only() {
    let schema = Schema::new(&database::url());
    let patient = options(&schema).limit(Duration::from_secs(25)).lanes(1);
    let store = open(&database::url(), &patient).await;
    let mut ends = Vec::new();
    for number in 0..10 {
        ends.push(done(begin(&store, &key(number)).await));
    }
    let mut other = database::client(&database::url()).await;
    let transaction = other.transaction().await.unwrap();
    let hold = format!("SELECT FROM {} WHERE id = '3' FOR UPDATE", schema.table());
    transaction.execute(&hold, &[]).await.unwrap();
    let mut calls = JoinSet::new();
    for (number, end) in ends.iter().cloned().enumerate() {
        let store = store.clone();
        calls.spawn(async move { (number, settle(&store, &end).await) });
    }
    for (number, settled) in calls.join_all().await {
        match settled {
            Ok(settled) => assert_eq!((settled, number != 3), (Settled::Applied, true)),
            Err(error) => assert!(number == 3 && error.is_retryable(), "{number}: {error:?}"),
        }
    }
    transaction.rollback().await.unwrap();
    assert_eq!(settle(&store, &ends[3]).await.unwrap(), Settled::Applied);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_somebody_holds_does_not_hold_up_other_claims() {
    let (store, schema) = fresh().await;
    let brief = claim_of(&[key("held")]).wanted;
    let claim = Claim::new(Nonce::random(), SHORT, brief);
    granted(store.claim(&claim).await.unwrap().pop().unwrap());
    let mut other = database::client(&database::url()).await;
    let transaction = other.transaction().await.unwrap();
    let hold = format!(
        "SELECT FROM {} WHERE id = 'held' FOR UPDATE",
        schema.table()
    );
    transaction.execute(&hold, &[]).await.unwrap();
    until("the lease lapses", async || {
        match look(&store, &key("held")).await {
            Sight::Running { remaining } => remaining.is_zero().then_some(()),
            _ => None,
        }
    })
    .await;
    let busy = ask(&store, &key("held")).await.unwrap();
    assert!(matches!(busy, Verdict::Running { .. }), "{busy:?}");
    begin(&store, &key("other")).await;
    transaction.rollback().await.unwrap();
    assert_eq!(begin(&store, &key("held")).await.attempt(), 2);
}
