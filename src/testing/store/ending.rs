//! Clauses on how runs end: recorded, released, too late, twice.

use crate::record::Keep;
use crate::store::contract::{Store, Wanted};
use crate::store::lease::{Hold, Lease, Settled, Token};
use crate::testing::store::fixture::Fixture;
use crate::testing::store::hand::{
    LONG, SHORT, ask, begin, busy, done, finish, is_absent, key, lapse, record, renew, replayed,
    settle, swept, take_over,
};

/// A released key was not handled: the next claim runs it as if it were the first.
// Field case B67.
pub async fn a_released_key_runs_again_as_a_first_attempt<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lease = begin(store, Wanted::new(key("a")), LONG).await;
    assert_eq!(settle(store, lease.release()).await, Settled::Applied);
    assert!(is_absent(store, &key("a")).await);
    let again = begin(store, Wanted::new(key("a")), LONG).await;
    assert_eq!(again.attempt(), 1);
}

/// A run that outlived its lease is recorded, if nobody took over.
pub async fn a_lapsed_lease_is_recorded_if_nobody_took_over<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lease = begin(store, Wanted::new(key("a")), SHORT).await;
    lapse(store, &key("a")).await;
    let late = lease.record(record("late"), Keep::For(LONG));
    assert_eq!(settle(store, late).await, Settled::Applied);
    assert_eq!(done(store, &key("a")).await, record("late"));
}

/// A run that outlived its lease is released, if nobody took over.
pub async fn a_lapsed_lease_is_released_if_nobody_took_over<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lease = begin(store, Wanted::new(key("a")), SHORT).await;
    lapse(store, &key("a")).await;
    assert_eq!(settle(store, lease.release()).await, Settled::Applied);
    assert!(is_absent(store, &key("a")).await);
}

/// The record of a run that was taken over is refused while the other runs.
pub async fn a_stale_record_changes_nothing_while_the_successor_runs<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let (stale, successor) = superseded(store).await;
    let late = stale.record(record("stale"), Keep::For(LONG));
    assert_eq!(settle(store, late).await, Settled::Superseded);
    busy(ask(store, Wanted::new(key("a")), LONG).await);
    let own = successor.record(record("successor"), Keep::For(LONG));
    assert_eq!(settle(store, own).await, Settled::Applied);
    assert_eq!(done(store, &key("a")).await, record("successor"));
}

/// The release of a run that was taken over is refused while the other runs.
// Field case P48.
pub async fn a_stale_release_changes_nothing_while_the_successor_runs<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let (stale, successor) = superseded(store).await;
    assert_eq!(settle(store, stale.release()).await, Settled::Superseded);
    busy(ask(store, Wanted::new(key("a")), LONG).await);
    assert_eq!(settle(store, successor.release()).await, Settled::Applied);
}

/// A done row is never written by a run that was taken over.
// Field case B07.
pub async fn a_stale_settlement_changes_nothing_after_the_successor_recorded<F: Fixture>(
    fixture: F,
) {
    let store = fixture.store();
    let (stale, successor) = superseded(store).await;
    let hold = stale.hold();
    let own = successor.record(record("successor"), Keep::For(LONG));
    settle(store, own).await;
    let late = stale.record(record("stale"), Keep::For(LONG));
    assert_eq!(settle(store, late).await, Settled::Superseded);
    let late = lease_of(&hold).release();
    assert_eq!(settle(store, late).await, Settled::Superseded);
    assert_eq!(done(store, &key("a")).await, record("successor"));
}

/// The row of a successor that released is gone; a late record does not make it again.
pub async fn a_stale_record_does_not_bring_back_a_released_row<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let (stale, successor) = superseded(store).await;
    settle(store, successor.release()).await;
    let late = stale.record(record("stale"), Keep::For(LONG));
    assert_eq!(settle(store, late).await, Settled::Superseded);
    assert!(is_absent(store, &key("a")).await);
}

/// Once released, a run cannot be recorded.
pub async fn a_record_after_the_release_does_not_bring_the_row_back<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lease = begin(store, Wanted::new(key("a")), LONG).await;
    let hold = lease.hold();
    settle(store, lease.release()).await;
    let late = lease_of(&hold).record(record("late"), Keep::For(LONG));
    assert_eq!(settle(store, late).await, Settled::Superseded);
    assert!(is_absent(store, &key("a")).await);
}

/// A doubled record that comes after retention ended does not make the row again.
// Field case B67.
pub async fn a_record_does_not_bring_back_a_swept_row<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lease = begin(store, Wanted::new(key("a")), LONG).await;
    let hold = lease.hold();
    settle(store, lease.record(record("a"), Keep::For(SHORT))).await;
    swept(store, &key("a")).await;
    let doubled = lease_of(&hold).record(record("a"), Keep::For(LONG));
    assert_eq!(settle(store, doubled).await, Settled::Superseded);
    assert!(is_absent(store, &key("a")).await);
}

/// A record that is sent again, since its answer was lost, is told that it is in force.
pub async fn a_second_settlement_is_applied_and_writes_nothing<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lease = begin(store, Wanted::new(key("a")), LONG).await;
    let hold = lease.hold();
    let first = lease.record(record("first"), Keep::For(LONG));
    assert_eq!(settle(store, first.clone()).await, Settled::Applied);
    assert_eq!(settle(store, first).await, Settled::Applied);
    let second = lease_of(&hold).record(record("second"), Keep::For(LONG));
    assert_eq!(settle(store, second).await, Settled::Applied);
    assert_eq!(done(store, &key("a")).await, record("first"));
}

/// A release, late or under its own token, does not remove a record.
pub async fn a_done_row_is_not_released<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lease = begin(store, Wanted::new(key("a")), LONG).await;
    let hold = lease.hold();
    settle(store, lease.record(record("a"), Keep::For(LONG))).await;
    settle(store, lease_of(&hold).release()).await;
    let another = Hold::new(key("a"), Token::new(hold.token.number() + 1));
    let late = lease_of(&another).release();
    assert_eq!(settle(store, late).await, Settled::Superseded);
    let again = replayed(ask(store, Wanted::new(key("a")), LONG).await);
    assert_eq!(again, record("a"));
}

/// A settlement only updates: without a row there is nothing to settle.
pub async fn a_settlement_without_a_row_is_superseded<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let nobody = Hold::new(key("a"), Token::new(1));
    let recorded = lease_of(&nobody).record(record("a"), Keep::For(LONG));
    assert_eq!(settle(store, recorded).await, Settled::Superseded);
    let released = lease_of(&nobody).release();
    assert_eq!(settle(store, released).await, Settled::Superseded);
    assert!(is_absent(store, &key("a")).await);
}

/// Key *and* token: a token that another key runs under settles nothing here.
pub async fn a_settlement_under_a_token_of_another_key_is_superseded<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let a = begin(store, Wanted::new(key("a")), LONG).await;
    let b = begin(store, Wanted::new(key("b")), LONG).await;
    finish(store, Wanted::new(key("c")), Keep::For(LONG)).await;
    for id in ["a", "c"] {
        let mixed = lease_of(&Hold::new(key(id), b.token()));
        let mixed = mixed.record(record("mixed"), Keep::For(LONG));
        assert_eq!(settle(store, mixed).await, Settled::Superseded);
        let mixed = lease_of(&Hold::new(key(id), b.token())).release();
        assert_eq!(settle(store, mixed).await, Settled::Superseded);
    }
    assert_eq!(done(store, &key("c")).await, record("c"));
    for lease in [a, b] {
        renew(store, &lease, LONG).await;
        assert_eq!(settle(store, lease.release()).await, Settled::Applied);
    }
}

/// A run of key `a` that was taken over, and the one that took it over.
async fn superseded<S: Store>(store: &S) -> (Lease, Lease) {
    let stale = begin(store, Wanted::new(key("a")), SHORT).await;
    let successor = take_over(store, &Wanted::new(key("a")), LONG).await;
    (stale, successor)
}

/// The lease of a call that is made twice.
fn lease_of(hold: &Hold) -> Lease {
    Lease::new(hold.key.clone(), hold.token, 1)
}
