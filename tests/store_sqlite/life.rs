//! The life of rows, of the file and of the threads.

use std::time::Duration;

use tokio::time::sleep;
use tower_idempotency::Keep;
use tower_idempotency::store::{Sight, SqliteOptions, Store};

use crate::support::{
    DAY, File, LEASE, begin, body_of, claim_of, claiming, eventually, finish, finish_many,
    is_absent, is_run, look, record_of, run,
};

#[tokio::test]
async fn a_row_is_there_when_the_file_is_opened_again() {
    let file = File::new();
    let store = file.open();
    finish(&store, "done", DAY).await;
    let lease = run(&store, "running").await;
    store.shutdown().await;
    let store = file.open();
    let Sight::Done(record) = look(&store, "done").await else {
        panic!("the record is gone")
    };
    assert_eq!(body_of(&record), b"done");
    assert!(
        matches!(look(&store, "running").await, Sight::Running { remaining } if remaining <= LEASE)
    );
    let token = lease.token();
    let settled = store.settle(&[lease.record(record_of("late"), DAY)]).await;
    assert!(settled.is_ok());
    assert!(run(&store, "next").await.token() > token);
}

#[tokio::test]
async fn a_shutdown_answers_what_waits_and_lets_go_of_the_file() {
    let file = File::new();
    let store = file.open();
    let lock = file.lock();
    let waiting = claiming(&store, &["a"]);
    sleep(Duration::from_millis(20)).await;
    let other = store.clone();
    let shutdown = tokio::task::spawn(async move { other.shutdown().await });
    sleep(Duration::from_millis(20)).await;
    assert!(!shutdown.is_finished());
    drop(lock);
    assert!(is_run(&waiting.await.unwrap().unwrap()));
    shutdown.await.unwrap();
    assert!(!file.log_path().exists(), "the file is still open");
    let error = store.claim(&claim_of(&["b"])).await.unwrap_err();
    assert!(error.is_retryable(), "{error:?}");
    store.shutdown().await;
}

#[tokio::test]
async fn the_last_handle_closes_the_file() {
    let file = File::new();
    let store = file.open();
    let other = store.clone();
    begin(&store, "a").await;
    drop(store);
    begin(&other, "b").await;
    assert!(file.log_path().exists());
    drop(other);
    eventually(async || !file.log_path().exists()).await;
}

#[tokio::test]
async fn rows_whose_retention_has_ended_go_by_themselves() {
    let file = File::new();
    let store = file.open_with(&SqliteOptions::new().sweep_every(Duration::from_millis(10)));
    let short = Keep::For(Duration::from_millis(50));
    finish(&store, "short", short).await;
    let idle = Duration::from_millis(50);
    finish(&store, "idle", Keep::Conversation { idle }).await;
    finish(&store, "long", DAY).await;
    eventually(async || is_absent(&store, "short").await).await;
    eventually(async || is_absent(&store, "idle").await).await;
    assert!(matches!(look(&store, "long").await, Sight::Done(_)));
}

#[tokio::test]
async fn the_sweeper_removes_a_backlog_and_leaves_running_rows() {
    let file = File::new();
    let store = file.open();
    for chunk in 0..6 {
        finish_many(&store, &format!("{chunk}"), 100, Keep::For(Duration::ZERO)).await;
    }
    begin(&store, "running").await;
    file.sql("UPDATE idempotency_claims SET leased_until = 1 WHERE id = 'running'");
    store.shutdown().await;
    let store = file.open_with(&SqliteOptions::new());
    eventually(async || file.count("SELECT count(*) FROM idempotency_claims") == 1).await;
    assert!(matches!(
        look(&store, "running").await,
        Sight::Running { .. }
    ));
}

#[tokio::test]
async fn a_load_that_never_rests_does_not_keep_the_sweeper_from_its_work() {
    let file = File::new();
    let store = file.open_with(&SqliteOptions::new().sweep_every(Duration::from_millis(1)));
    let gone = Keep::For(Duration::ZERO);
    let work = async |name: &str| {
        for i in 0..300 {
            finish(&store, &format!("{name}-{i}"), gone).await;
        }
    };
    tokio::join!(work("a"), work("b"), work("c"), work("d"));
    let left = file.count("SELECT count(*) FROM idempotency_claims");
    assert!(left < 300, "{left} of 1200 rows are left");
}
