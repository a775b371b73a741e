//! Calls that wait share a transaction, and what that means when one of them, or all, fail.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tower_idempotency::store::{Settled, Sight, SqliteOptions, SqliteStore, Store};

use crate::support::{
    Claiming, DAY, File, begin, claim_of, claiming, finish, is_absent, is_run, look, record_of, run,
};

/// Starts claims while the file is locked, and unlocks it when all of them wait: behind one that
/// has its own transaction.
async fn claim_together(file: &File, store: &SqliteStore, claims: &[&[&str]]) -> Vec<Claiming> {
    let lock = file.lock();
    let first = claiming(store, &["first"]);
    sleep(Duration::from_millis(50)).await;
    let claims = claims.iter().map(|ids| claiming(store, ids)).collect();
    sleep(Duration::from_millis(50)).await;
    drop(lock);
    assert!(is_run(&first.await.unwrap().unwrap()));
    claims
}

#[tokio::test]
async fn calls_that_wait_share_one_transaction() {
    let file = File::new();
    let store = file.open();
    let commits = file.commits();
    let ids: Vec<String> = (0..50).map(|i| i.to_string()).collect();
    let ids: Vec<[&str; 1]> = ids.iter().map(|id| [id.as_str()]).collect();
    let claims: Vec<&[&str]> = ids.iter().map(|ids| &ids[..]).collect();
    for claim in claim_together(&file, &store, &claims).await {
        assert!(is_run(&claim.await.unwrap().unwrap()));
    }
    let commits = file.commits() - commits;
    assert!(commits <= 2, "51 claims took {commits} transactions");
}

#[tokio::test]
async fn a_lone_call_does_not_wait_for_others() {
    let store = File::new().open();
    let began = Instant::now();
    for i in 0..20 {
        begin(&store, &i.to_string()).await;
    }
    assert!(began.elapsed() < Duration::from_secs(2), "there is a timer");
}

#[tokio::test]
async fn a_bad_value_fails_the_call_that_carries_it_and_no_other() {
    let file = File::new();
    let store = file.open();
    refuse_bad(&file, "RAISE(ABORT, 'bad')");
    let claims = claim_together(&file, &store, &[&["a"], &["b", "bad"], &["c"]]).await;
    let mut answers = Vec::new();
    for claim in claims {
        answers.push(claim.await.unwrap());
    }
    assert!(is_run(answers[0].as_ref().unwrap()) && is_run(answers[2].as_ref().unwrap()));
    assert!(!answers[1].as_ref().unwrap_err().is_retryable());
}

#[tokio::test]
async fn a_call_that_fails_leaves_nothing_behind() {
    let file = File::new();
    let store = file.open();
    refuse_bad(&file, "RAISE(ABORT, 'bad')");
    assert!(store.claim(&claim_of(&["a", "bad"])).await.is_err());
    assert!(is_absent(&store, "a").await);
}

#[tokio::test]
async fn a_transaction_that_is_rolled_back_fails_all_its_calls_as_retryable() {
    let file = File::new();
    let store = file.open();
    refuse_bad(&file, "RAISE(ROLLBACK, 'bad')");
    let claims = claim_together(&file, &store, &[&["a"], &["bad"], &["c"]]).await;
    let mut answers = Vec::new();
    for claim in claims {
        answers.push(claim.await.unwrap());
    }
    assert!(answers[0].as_ref().unwrap_err().is_retryable());
    assert!(answers[2].as_ref().unwrap_err().is_retryable());
    assert!(is_absent(&store, "a").await && is_absent(&store, "c").await);
    begin(&store, "a").await;
}

/// Field case B116.
#[tokio::test]
async fn a_commit_that_fails_fails_all_its_calls_as_retryable() {
    let file = File::new();
    let store = file.open();
    // The reference is checked by the commit and by nothing before it.
    file.sql(
        "CREATE TABLE parent (id INTEGER PRIMARY KEY);
         CREATE TABLE child (id INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
         CREATE TRIGGER orphan AFTER INSERT ON idempotency_claims WHEN new.id = 'bad'
         BEGIN INSERT INTO child VALUES (1); END;",
    );
    for claim in claim_together(&file, &store, &[&["a"], &["bad"]]).await {
        assert!(claim.await.unwrap().unwrap_err().is_retryable());
    }
    assert!(is_absent(&store, "a").await && is_absent(&store, "bad").await);
    begin(&store, "a").await;
}

#[tokio::test]
async fn a_file_that_stays_busy_is_a_retryable_error() {
    let file = File::new();
    let options = SqliteOptions::new().busy_limit(Duration::from_millis(100));
    let store = file.open_with(&options);
    let lock = file.lock();
    let error = store.claim(&claim_of(&["a"])).await.unwrap_err();
    assert!(error.is_retryable(), "{error:?}");
    drop(lock);
    begin(&store, "a").await;
}

#[tokio::test]
async fn a_look_does_not_wait_behind_the_writer() {
    let file = File::new();
    let store = file.open();
    finish(&store, "a", DAY).await;
    let lock = file.lock();
    let waiting = claiming(&store, &["b"]);
    assert!(matches!(look(&store, "a").await, Sight::Done(_)));
    assert!(is_absent(&store, "b").await);
    assert!(!waiting.is_finished());
    drop(lock);
    assert!(is_run(&waiting.await.unwrap().unwrap()));
}

#[tokio::test]
async fn a_claim_whose_caller_went_away_before_it_began_is_not_made() {
    let file = File::new();
    let store = file.open();
    let lock = file.lock();
    let gone = claiming(&store, &["gone"]);
    let stays = claiming(&store, &["stays"]);
    sleep(Duration::from_millis(50)).await;
    gone.abort();
    sleep(Duration::from_millis(50)).await;
    drop(lock);
    assert!(is_run(&stays.await.unwrap().unwrap()));
    assert!(is_absent(&store, "gone").await);
}

#[tokio::test]
async fn a_record_whose_caller_went_away_is_written_all_the_same() {
    let file = File::new();
    let store = file.open();
    let settlement = run(&store, "a").await.record(record_of("a"), DAY);
    let lock = file.lock();
    let gone = tokio::task::spawn({
        let (store, settlement) = (store.clone(), settlement.clone());
        async move { store.settle(&[settlement]).await }
    });
    sleep(Duration::from_millis(50)).await;
    gone.abort();
    drop(lock);
    begin(&store, "b").await;
    assert!(matches!(look(&store, "a").await, Sight::Done(_)));
    let again = store.settle(&[settlement]).await.unwrap();
    assert_eq!(again, [Settled::Applied]);
}

/// Makes SQLite refuse the id `bad`.
fn refuse_bad(file: &File, how: &str) {
    file.sql(&format!(
        "CREATE TRIGGER refuse BEFORE INSERT ON idempotency_claims WHEN new.id = 'bad'
         BEGIN SELECT {how}; END;"
    ));
}
