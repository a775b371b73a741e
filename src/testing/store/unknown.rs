//! Clauses on claims that leave alone what has lapsed, for a time.

use std::time::Duration;

use futures_util::future::join_all;

use crate::key::Conversation;
use crate::record::{Keep, Payload};
use crate::store::contract::{Claim, Nonce, Store, Verdict, Wanted};
use crate::store::lease::{End, Lease, Settled, Standing};
use crate::store::unknown::{Resolved, settle_unknown};
use crate::testing::store::fixture::Fixture;
use crate::testing::store::hand::{
    LONG, SHORT, ask, begin, busy, done, finish, granted, is_absent, key, lapse, only, print,
    record, remaining, renew, replayed, settle, take_over, until,
};

/// A lapsed run is unknown to a claim that says so, and its row stays as it is.
pub async fn a_lapsed_run_is_unknown_to_a_claim_that_says_so<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lease = parked(store, Wanted::new(key("a"))).await;
    for _ in 0..3 {
        let left = unknown(ask_parking(store, Wanted::new(key("a")), LONG).await);
        assert!(left > LONG / 2 && left <= LONG, "{left:?} of {LONG:?}");
    }
    assert!(remaining(store, &key("a")).await.is_zero());
    assert_eq!(renew(store, &lease, LONG).await, Standing::Renewed);
}

/// A run that is alive is running for every claim, and what is done is done.
pub async fn only_what_has_lapsed_is_unknown<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lease = begin(store, Wanted::new(key("running")), LONG).await;
    busy(ask_parking(store, Wanted::new(key("running")), LONG).await);
    finish(store, Wanted::new(key("done")), Keep::For(LONG)).await;
    replayed(ask_parking(store, Wanted::new(key("done")), LONG).await);
    let new = granted(ask_parking(store, Wanted::new(key("new")), LONG).await);
    drop((lease, new));
}

/// Who does not say so takes over, as ever.
pub async fn a_claim_that_does_not_say_so_takes_over<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let first = parked(store, Wanted::new(key("a"))).await;
    unknown(ask_parking(store, Wanted::new(key("a")), LONG).await);
    let second = granted(ask(store, Wanted::new(key("a")), LONG).await);
    assert!(second.token() > first.token());
    assert_eq!(second.attempt(), 2);
}

/// When the time has passed, the next claim runs, under a higher token.
pub async fn what_was_unknown_for_its_time_is_taken_over<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let first = parked(store, Wanted::new(key("a"))).await;
    let second = until("it may be run", async || {
        match ask_parking(store, Wanted::new(key("a")), SHORT).await {
            Verdict::Run(lease) => Some(lease),
            Verdict::Unknown { remaining } if remaining <= SHORT => None,
            other => panic!("neither granted nor unknown: {other:?}"),
        }
    })
    .await;
    assert!(second.token() > first.token());
    assert_eq!(second.attempt(), 2);
    busy(ask_parking(store, Wanted::new(key("a")), SHORT).await);
}

/// An attempt's own lease is its own, also where it has lapsed: same token, same attempt.
pub async fn an_attempts_own_lapsed_run_is_not_unknown_to_it<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let claim = Claim::new(Nonce::random(), LONG, vec![Wanted::new(key("a"))]);
    let claim = claim.unknown_for(Some(LONG));
    let first = granted(only(store.claim(&claim).await.unwrap()));
    assert_eq!(
        renew(store, &first, Duration::ZERO).await,
        Standing::Renewed
    );
    let again = granted(only(store.claim(&claim).await.unwrap()));
    assert_eq!((again.token(), again.attempt()), (first.token(), 1));
    assert!(remaining(store, &key("a")).await > LONG / 2);
}

/// The late owner of an unknown run records it.
pub async fn an_unknown_run_is_recorded_by_its_late_owner<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lease = parked(store, Wanted::new(key("a"))).await;
    unknown(ask_parking(store, Wanted::new(key("a")), LONG).await);
    let late = lease.record(record("late"), Keep::For(LONG));
    assert_eq!(settle(store, late).await, Settled::Applied);
    let again = replayed(ask_parking(store, Wanted::new(key("a")), LONG).await);
    assert_eq!(again, record("late"));
}

/// The late owner of an unknown run gives it back: the next claim is a first one.
pub async fn an_unknown_run_is_released_by_its_late_owner<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lease = parked(store, Wanted::new(key("a"))).await;
    assert_eq!(settle(store, lease.release()).await, Settled::Applied);
    let next = granted(ask_parking(store, Wanted::new(key("a")), LONG).await);
    assert_eq!(next.attempt(), 1);
}

/// The late owner of an unknown run renews it: it is running then.
pub async fn an_unknown_run_is_renewed_by_its_late_owner<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lease = parked(store, Wanted::new(key("a"))).await;
    assert_eq!(renew(store, &lease, LONG).await, Standing::Renewed);
    busy(ask_parking(store, Wanted::new(key("a")), LONG).await);
}

/// Another request under an unknown key is told which request has it.
pub async fn an_unknown_key_with_another_fingerprint_is_other<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let wanted = |number| Wanted::new(key("a")).fingerprint(print(number));
    let lease = parked(store, wanted(1)).await;
    match ask_parking(store, wanted(2), LONG).await {
        Verdict::Other { first } => assert_eq!(first, print(1)),
        other => panic!("not told of another request: {other:?}"),
    }
    unknown(ask_parking(store, wanted(1), LONG).await);
    drop(lease);
}

/// Who takes over without a fingerprint leaves the row's: a repeat is still compared.
pub async fn a_take_over_without_a_fingerprint_keeps_the_rows<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let wanted = |number| Wanted::new(key("a")).fingerprint(print(number));
    let first = parked(store, wanted(1)).await;
    let second = take_over(store, &Wanted::new(key("a")), LONG).await;
    busy(ask(store, wanted(1), LONG).await);
    let other = ask(store, wanted(2), LONG).await;
    assert!(matches!(other, Verdict::Other { first } if first == print(1)));
    drop((first, second));
}

/// In one claim each key says its own: what is free is granted beside what is unknown.
pub async fn unknown_keys_of_a_claim_keep_no_others_from_running<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lapsed = parked(store, Wanted::new(key("b"))).await;
    let wanted = ["a", "b", "c"].map(|id| Wanted::new(key(id)));
    let claim = Claim::new(Nonce::random(), LONG, wanted.to_vec()).unknown_for(Some(LONG));
    let verdicts = store.claim(&claim).await.unwrap();
    assert!(
        matches!(
            verdicts.as_slice(),
            [Verdict::Run(_), Verdict::Unknown { .. }, Verdict::Run(_)]
        ),
        "{verdicts:?}"
    );
    drop(lapsed);
}

/// Claims that leave it alone and claims that do not, at once: one runs, and it is one of those
/// that do not.
pub async fn of_64_mixed_claims_of_an_unknown_run_one_runs<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lapsed = parked(store, Wanted::new(key("a"))).await;
    let verdicts = join_all((0..64).map(async |number| {
        let wanted = Wanted::new(key("a"));
        if number % 2 == 0 {
            (true, ask_parking(store, wanted, LONG).await)
        } else {
            (false, ask(store, wanted, LONG).await)
        }
    }))
    .await;
    let runs = verdicts
        .iter()
        .filter(|(_, v)| matches!(v, Verdict::Run(_)));
    let runs: Vec<bool> = runs.map(|(parking, _)| *parking).collect();
    assert_eq!(runs, [false]);
    drop(lapsed);
}

/// A lease of no time is over, and its row stays: its owner may still end it.
pub async fn a_renewal_of_no_time_ends_the_lease_and_leaves_the_row<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lease = begin(store, Wanted::new(key("a")), LONG).await;
    assert_eq!(
        renew(store, &lease, Duration::ZERO).await,
        Standing::Renewed
    );
    assert!(remaining(store, &key("a")).await.is_zero());
    unknown(ask_parking(store, Wanted::new(key("a")), LONG).await);
    assert_eq!(settle(store, lease.release()).await, Settled::Applied);
}

/// An unknown row of a forgotten conversation is marked: whoever settles it leaves no payload.
pub async fn an_unknown_run_is_marked_by_forgetting<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let conversation = Conversation::new("contract", "", "a");
    let wanted = Wanted::new(key("a")).conversation(conversation.clone());
    let lease = parked(store, wanted.clone()).await;
    assert_eq!(store.forget(&conversation).await.unwrap(), 1);
    unknown(ask_parking(store, wanted, LONG).await);
    assert_eq!(settle_as(store, "told").await, Resolved::Applied);
    assert_eq!(*done(store, &key("a")).await.payload(), Payload::Forgotten);
    drop(lease);
}

/// Who settles an unknown run as done takes it from its late owner, whose own record would be a
/// second answer.
pub async fn an_unknown_run_is_settled_as_done_and_its_owner_is_late<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lease = parked(store, Wanted::new(key("a"))).await;
    assert_eq!(settle_as(store, "told").await, Resolved::Applied);
    let late = lease.record(record("late"), Keep::For(LONG));
    assert_eq!(settle(store, late).await, Settled::Superseded);
    let again = replayed(ask_parking(store, Wanted::new(key("a")), LONG).await);
    assert_eq!(again, record("told"));
    assert_eq!(settle_as(store, "again").await, Resolved::Done);
}

/// Who settles an unknown run as not done lets the next claim run.
pub async fn an_unknown_run_is_settled_as_not_done_and_runs_again<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lease = parked(store, Wanted::new(key("a"))).await;
    let released = settle_unknown(store, &key("a"), End::Release)
        .await
        .unwrap();
    assert_eq!(released, Resolved::Applied);
    assert!(is_absent(store, &key("a")).await);
    let next = granted(ask_parking(store, Wanted::new(key("a")), LONG).await);
    assert!(next.token() > lease.token());
    let late = lease.record(record("late"), Keep::For(LONG));
    assert_eq!(settle(store, late).await, Settled::Superseded);
}

/// A run that is alive is nobody else's to settle, nor is a key without a row.
pub async fn only_an_unknown_run_is_settled_by_others<F: Fixture>(fixture: F) {
    let store = fixture.store();
    assert_eq!(settle_as(store, "told").await, Resolved::Absent);
    assert!(is_absent(store, &key("a")).await);
    let lease = begin(store, Wanted::new(key("a")), LONG).await;
    match settle_as(store, "told").await {
        Resolved::Running { remaining } => assert!(remaining > LONG / 2),
        other => panic!("settled a run that is alive: {other:?}"),
    }
    let own = lease.record(record("own"), Keep::For(LONG));
    assert_eq!(settle(store, own).await, Settled::Applied);
}

/// A run of this message that has lapsed.
async fn parked<S: Store>(store: &S, wanted: Wanted) -> Lease {
    let key = wanted.key.clone();
    let lease = begin(store, wanted, SHORT).await;
    lapse(store, &key).await;
    lease
}

/// Claims one message for a new attempt that leaves what has lapsed alone for `time`.
async fn ask_parking<S: Store>(store: &S, wanted: Wanted, time: Duration) -> Verdict {
    let claim = Claim::new(Nonce::random(), LONG, vec![wanted]).unknown_for(Some(time));
    only(store.claim(&claim).await.unwrap())
}

/// What is left, by a verdict that must say that the outcome is unknown.
fn unknown(verdict: Verdict) -> Duration {
    match verdict {
        Verdict::Unknown { remaining } => remaining,
        other => panic!("not unknown: {other:?}"),
    }
}

async fn settle_as<S: Store>(store: &S, body: &str) -> Resolved {
    let end = End::Record {
        record: record(body),
        keep: Keep::For(LONG),
    };
    settle_unknown(store, &key("a"), end).await.unwrap()
}
