//! What a layer measures.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use tower_idempotency::store::{Claim, Lease, MemoryStore, Nonce, Store, Token, Verdict, Wanted};
use tower_idempotency::watch::metric::{
    DETACHED, ENDS, RENEWALS, REPEAT_AGE_SECONDS, REQUESTS, ROLLED_BACK, STORE_SECONDS, TAKEOVERS,
    UNCONFIRMED, WAIT_SECONDS,
};
use tower_idempotency::{IdempotencyLayer, OnStoreFailure, OnUnknown};

use crate::app::{Notes, key, post};
use crate::seen::{Seen, seen};
use crate::store::{Mood, Moody};

type Layer<S> = IdempotencyLayer<S, Notes>;

/// Runs a scenario on a layer over a store in memory.
fn on_memory<F: Future<Output = ()>>(
    scenario: impl FnOnce(MemoryStore, Layer<MemoryStore>) -> F,
) -> Seen {
    seen(|| {
        let store = MemoryStore::new();
        scenario(store.clone(), IdempotencyLayer::new(store, Notes::new()))
    })
}

fn on_moody<F: Future<Output = ()>>(scenario: impl FnOnce(Moody, Layer<Moody>) -> F) -> Seen {
    seen(|| {
        let store = Moody::default();
        scenario(store.clone(), IdempotencyLayer::new(store, Notes::new()))
    })
}

fn requests(seen: &Seen, outcome: &str) -> u64 {
    seen.counted(REQUESTS, &["notes", "line", outcome])
}

#[test]
fn requests_are_counted_by_channel_and_outcome() {
    let seen = on_memory(|_, layer| async move {
        post(&layer, "a", "one").await;
        post(&layer, "a", "one").await;
        post(&layer, "a", "two").await;
        post(&layer, "", "").await;
        post(&layer, "bad", "").await;
        let large = "x".repeat(2 << 20).leak();
        post(&layer, "b", large).await;
    });
    let outcomes = ["run", "replayed", "mismatched", "without_key", "refused"];
    let counted = outcomes.map(|outcome| requests(&seen, outcome));
    assert_eq!(counted, [1, 1, 1, 1, 2]);
}

#[test]
fn ends_of_runs_are_counted() {
    let seen = on_memory(|_, layer| async move {
        post(&layer, "a", "one").await;
        post(&layer, "b", "fail").await;
    });
    assert_eq!(seen.counted(ENDS, &["notes", "recorded"]), 1);
    assert_eq!(seen.counted(ENDS, &["notes", "released"]), 1);
}

#[test]
fn what_nobody_knows_the_outcome_of_is_counted() {
    let seen = on_memory(|_, layer| async move {
        let unknown_for = Duration::from_hours(1);
        let layer = layer.on_unknown(OnUnknown::Park { unknown_for });
        post(&layer, "a", "cut").await;
        post(&layer, "a", "cut").await;
    });
    assert_eq!(seen.counted(ENDS, &["notes", "parked"]), 1);
    assert_eq!(seen.counted(RENEWALS, &["lease", "renewed"]), 0);
    assert_eq!((requests(&seen, "run"), requests(&seen, "unknown")), (1, 1));
    assert_eq!(seen.measured(REPEAT_AGE_SECONDS, &["notes"]).len(), 1);
}

#[test]
fn the_age_of_a_repeat_is_measured_once_by_its_senders_clock() {
    let seen = on_memory(|_, layer| async move {
        post(&layer, "a", "wait").await;
        assert!(layer.counts().replayed == 0);
        post(&layer, "a", "wait").await;
    });
    let ages = seen.measured(REPEAT_AGE_SECONDS, &["notes"]);
    assert_eq!(ages.len(), 1);
    assert!((3600.0..3660.0).contains(&ages[0]), "{ages:?}");
}

#[test]
fn a_wait_is_measured_whether_it_ends_in_a_replay_or_in_a_refusal() {
    let seen = on_memory(|_, layer| async move {
        for body in ["wait", "slow"] {
            let repeat = async {
                sleep(Duration::from_secs(1)).await;
                post(&layer, body, body).await
            };
            let (_, (status, _)) = tokio::join!(post(&layer, body, body), repeat);
            assert_eq!(status == 409, body == "slow");
        }
    });
    let waits = seen.measured(WAIT_SECONDS, &["notes"]);
    assert_eq!(waits.len(), 2);
    assert!(
        (1.0..1.5).contains(&waits[0]) && (9.5..10.5).contains(&waits[1]),
        "{waits:?}"
    );
    assert_eq!(
        (requests(&seen, "busy"), requests(&seen, "replayed")),
        (1, 1)
    );
    // Once for each repeat, however often it looked.
    assert_eq!(seen.measured(REPEAT_AGE_SECONDS, &["notes"]).len(), 2);
}

#[test]
fn renewals_are_counted_and_losses_too() {
    let seen = on_memory(|store, layer| async move {
        let run = post(&layer, "a", "slow");
        let thief = async {
            sleep(Duration::from_secs(55)).await;
            take_over(&store, 1).await;
        };
        let ((status, _), ()) = tokio::join!(run, thief);
        assert_eq!(status, 503);
        assert_eq!(layer.counts().renewals_lost, 1);
    });
    assert_eq!(seen.counted(RENEWALS, &["lease", "renewed"]), 5);
    assert_eq!(seen.counted(RENEWALS, &["lease", "lost"]), 1);
    assert_eq!(seen.counted(ENDS, &["notes", "superseded"]), 1);
}

/// As if the run's lease had lapsed and another process had claimed the message.
async fn take_over(store: &MemoryStore, token: i64) {
    let lease = Lease::new(key("a"), Token::new(token), 1);
    store.settle(&[lease.release()]).await.unwrap();
    let claim = claim(Duration::from_mins(10));
    let verdicts = store.claim(&claim).await.unwrap();
    assert!(matches!(verdicts[..], [Verdict::Run(_)]));
}

fn claim(lease: Duration) -> Claim {
    Claim::new(Nonce::random(), lease, vec![Wanted::new(key("a"))])
}

#[test]
fn a_run_after_one_that_died_is_a_takeover() {
    let seen = on_memory(|store, layer| async move {
        let lost = store.claim(&claim(Duration::from_secs(1))).await;
        drop(lost);
        sleep(Duration::from_secs(2)).await;
        post(&layer, "a", "one").await;
    });
    assert_eq!(seen.counted(TAKEOVERS, &["notes"]), 1);
}

#[test]
fn a_run_whose_caller_left_is_counted() {
    let seen = on_memory(|_, layer| async move {
        let left = timeout(Duration::from_secs(1), post(&layer, "a", "slow"));
        assert!(left.await.is_err());
        assert_eq!(layer.drain(Duration::from_mins(5)).await, 0);
    });
    assert_eq!(seen.counted(DETACHED, &[]), 1);
}

#[test]
fn a_store_that_fails_is_counted_and_timed() {
    let seen = on_moody(|store, layer| async move {
        post(&layer, "a", "one").await;
        store.is(Mood::Fails);
        assert_eq!(post(&layer, "b", "one").await.0, 503);
        store.is(Mood::Hangs);
        assert_eq!(post(&layer, "c", "one").await.0, 503);
        assert_eq!(layer.counts().unavailable, 2);
        let brave = layer.on_store_failure(OnStoreFailure::RunUnprotected);
        assert_eq!(post(&brave, "d", "one").await.0, 200);
    });
    assert_eq!(
        (
            requests(&seen, "unavailable"),
            requests(&seen, "unprotected")
        ),
        (2, 1)
    );
    let calls = |result| seen.measured(STORE_SECONDS, &["claim", result]);
    assert_eq!((calls("ok").len(), calls("failed").len()), (1, 2));
    // Each request asks twice; the limit of a call is 5 s.
    let unanswered = calls("unanswered");
    assert_eq!(unanswered.len(), 4);
    assert!(
        unanswered.iter().all(|it| (5.0..5.1).contains(it)),
        "{unanswered:?}"
    );
}

#[test]
fn an_end_that_is_not_confirmed_is_counted() {
    let seen = on_moody(|store, layer| async move {
        store.is(Mood::SettlesNothing);
        assert_eq!(post(&layer, "a", "one").await.0, 503);
        store.is(Mood::Well);
        assert_eq!(layer.drain(Duration::from_mins(5)).await, 0);
    });
    assert_eq!(seen.counted(UNCONFIRMED, &[]), 1);
    assert_eq!(seen.counted(ENDS, &["notes", "recorded"]), 1);
}

#[test]
fn a_transaction_is_timed_and_one_that_came_to_nothing_is_counted() {
    let seen = on_moody(|store, layer| async move {
        store.is(Mood::CommitsNothing);
        assert_eq!(post(&layer, "a", "effect").await.0, 503);
        store.is(Mood::Well);
        assert_eq!(post(&layer, "a", "effect").await.0, 200);
        let counts = layer.counts();
        assert_eq!((counts.rolled_back, counts.recorded), (1, 1));
    });
    assert_eq!(seen.counted(ROLLED_BACK, &[]), 1);
    assert_eq!(seen.counted(ENDS, &["notes", "recorded"]), 1);
    assert_eq!(seen.measured(STORE_SECONDS, &["commit", "ok"]).len(), 2);
}
