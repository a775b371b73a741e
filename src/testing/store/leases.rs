//! Clauses on leases: lapsing, taking over, renewing, tokens.

use crate::record::Keep;
use crate::store::contract::{Store, Wanted};
use crate::store::lease::{Hold, Standing, Token};
use crate::testing::store::fixture::Fixture;
use crate::testing::store::hand::{
    LONG, SHORT, ask, begin, busy, finish, key, lapse, record, remaining, renew, settle, take_over,
};

/// A lapsed lease is taken over by the next claim, under a higher token.
// Field case B24.
pub async fn a_lapsed_lease_is_taken_over_with_a_higher_token<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let first = begin(store, Wanted::new(key("a")), SHORT).await;
    lapse(store, &key("a")).await;
    let second = take_over(store, &Wanted::new(key("a")), LONG).await;
    assert!(second.token() > first.token());
    assert_eq!(second.attempt(), 2);
    busy(ask(store, Wanted::new(key("a")), LONG).await);
}

/// The attempt number says how many runs began before without ending.
pub async fn each_take_over_counts_an_attempt<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let mut token = Token::new(i64::MIN);
    for attempt in 1..=4 {
        let lease = take_over(store, &Wanted::new(key("a")), SHORT).await;
        assert_eq!(lease.attempt(), attempt);
        assert!(lease.token() > token);
        token = lease.token();
    }
}

/// A lease lasts as long as the claim that took it over asked, not as the one before.
pub async fn a_taken_over_lease_lasts_as_long_as_its_claim_asked<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let first = begin(store, Wanted::new(key("a")), SHORT).await;
    let second = take_over(store, &Wanted::new(key("a")), LONG).await;
    let left = remaining(store, &key("a")).await;
    assert!(left > LONG / 2 && left <= LONG, "{left:?}");
    drop((first, second));
}

/// Tokens come from one sequence of the whole store: each is higher than all that were given
/// before, also after a row was released.
pub async fn tokens_rise_across_keys_and_after_release<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let mut token = Token::new(i64::MIN);
    for id in ["a", "b", "a", "a", "c", "b", "a"] {
        let lease = begin(store, Wanted::new(key(id)), LONG).await;
        assert!(lease.token() > token, "{id}: the token did not rise");
        token = lease.token();
        settle(store, lease.release()).await;
    }
}

/// A renewal counts from the moment it is made.
pub async fn a_renewed_lease_lasts_from_the_renewal<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lease = begin(store, Wanted::new(key("a")), LONG).await;
    assert_eq!(renew(store, &lease, LONG * 2).await, Standing::Renewed);
    let left = remaining(store, &key("a")).await;
    assert!(left > LONG && left <= LONG * 2, "{left:?}");
}

/// Until somebody takes over, a lapsed lease can still be renewed.
pub async fn a_lapsed_lease_is_renewed_if_nobody_took_over<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lease = begin(store, Wanted::new(key("a")), SHORT).await;
    lapse(store, &key("a")).await;
    assert_eq!(renew(store, &lease, LONG).await, Standing::Renewed);
    busy(ask(store, Wanted::new(key("a")), LONG).await);
}

/// A lease that was taken over cannot be renewed, and trying changes nothing.
// Field case B07.
pub async fn a_lease_that_was_taken_over_is_lost<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let first = begin(store, Wanted::new(key("a")), SHORT).await;
    let second = take_over(store, &Wanted::new(key("a")), LONG).await;
    assert_eq!(renew(store, &first, LONG * 9).await, Standing::Lost);
    assert!(remaining(store, &key("a")).await <= LONG);
    assert_eq!(renew(store, &second, LONG).await, Standing::Renewed);
}

/// A lease ends with its run: recorded or released, there is nothing to renew.
pub async fn a_lease_is_lost_once_its_run_ended<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let released = begin(store, Wanted::new(key("a")), LONG).await;
    let recorded = begin(store, Wanted::new(key("b")), LONG).await;
    let holds = [released.hold(), recorded.hold()];
    settle(store, released.release()).await;
    settle(store, recorded.record(record("b"), Keep::For(LONG))).await;
    let standings = store.renew(&holds, LONG).await.unwrap();
    assert_eq!(standings, [Standing::Lost, Standing::Lost]);
}

/// Several renewals in one call are answered each by itself, in the order of the question.
pub async fn renewals_are_answered_in_order<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let a = begin(store, Wanted::new(key("a")), LONG).await;
    let b = begin(store, Wanted::new(key("b")), LONG).await;
    finish(store, Wanted::new(key("c")), Keep::For(LONG)).await;
    let gone = |id| Hold::new(key(id), a.token());
    let holds = [gone("z"), b.hold(), a.hold(), gone("c"), gone("b")];
    let standings = store.renew(&holds, LONG).await.unwrap();
    let renewed = standings
        .iter()
        .map(|standing| *standing == Standing::Renewed);
    assert_eq!(
        renewed.collect::<Vec<_>>(),
        [false, true, true, false, false]
    );
}
