//! A process whose clock is two hours off judges no lease by it: the server's clock does.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::sleep;
use tower_idempotency::store::{PostgresOptions, PostgresStore, Sight, Store, Verdict};

use crate::child;
use crate::database;
use crate::fixture::fresh;
use crate::hand::{LONG, SHORT, ask, begin, claim_of, granted, is_running, key, look, until};

/// Field cases B25, P40.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_two_hours_ahead_takes_no_lease_that_lives_and_gives_none_that_lasts() {
    let (store, schema) = fresh().await;
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("clock.so");
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .args([
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/postgres/clock.c"),
            "-ldl",
        ])
        .status();
    assert!(compiled.unwrap().success());
    drop(begin(&store, &key("held")).await);
    let mut brief = claim_of(&[key("lapsed")]);
    brief.lease = SHORT;
    drop(store.claim(&brief).await.unwrap());
    sleep(SHORT * 2).await;
    let task = format!("{} {}", schema.table(), seconds());
    let mut other = child::spawn("clock::ahead", &task, Some(&library));
    until("the other ends", async || other.has_ended().then_some(())).await;
    match look(&store, &key("new")).await {
        Sight::Running { remaining } => assert!(remaining <= LONG, "{remaining:?}"),
        other => panic!("not running: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a process that another test starts"]
async fn ahead() {
    let Some(task) = child::task() else { return };
    let (table, then) = task.split_once(' ').unwrap();
    let ahead = seconds() - then.parse::<u64>().unwrap();
    assert!(ahead >= 2 * 60 * 60, "the clock is right: {ahead} s");
    let options = PostgresOptions::with_table(table).unwrap();
    let store = PostgresStore::connect_with(&database::url(), &options)
        .await
        .unwrap();
    match ask(&store, &key("held")).await.unwrap() {
        Verdict::Running { remaining } => {
            assert!(remaining <= LONG && remaining > LONG / 2);
        }
        other => panic!("a lease that lives was taken: {other:?}"),
    }
    assert_eq!(
        granted(ask(&store, &key("lapsed")).await.unwrap()).attempt(),
        2
    );
    drop(begin(&store, &key("new")).await);
    assert!(is_running(&look(&store, &key("new")).await));
}

#[expect(clippy::disallowed_methods, reason = "the clock that is wrong")]
fn seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}
