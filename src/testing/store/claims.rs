//! Clauses on what a claim is answered.

use crate::key::Key;
use crate::record::Keep;
use crate::store::contract::{Nonce, Verdict, Wanted};
use crate::testing::store::fixture::Fixture;
use crate::testing::store::hand::{
    LONG, SHORT, ask, ask_as, begin, busy, finish, granted, key, lapse, print, remaining, replayed,
    take_over,
};

/// No row: run it, as the first attempt.
pub async fn a_key_without_a_row_is_run<F: Fixture>(fixture: F) {
    let lease = begin(fixture.store(), Wanted::new(key("a")), LONG).await;
    assert_eq!((lease.key(), lease.attempt()), (&key("a"), 1));
}

/// A running key is busy for every other attempt.
pub async fn a_running_key_is_busy<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lease = begin(store, Wanted::new(key("a")), LONG).await;
    for _ in 0..3 {
        busy(ask(store, Wanted::new(key("a")), LONG).await);
    }
    drop(lease);
}

/// The answer "running" says how much of the lease is left.
pub async fn a_claim_tells_what_is_left_of_the_lease<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lease = begin(store, Wanted::new(key("a")), LONG).await;
    let left = busy(ask(store, Wanted::new(key("a")), LONG * 3).await);
    assert!(left > LONG / 2 && left <= LONG, "{left:?} of {LONG:?}");
    drop(lease);
}

/// The same attempt that asks again gets the same lease: same token, same attempt number.
pub async fn an_attempts_own_lease_is_given_again<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let nonce = Nonce::random();
    let first = granted(ask_as(store, nonce, Wanted::new(key("a")), LONG).await);
    let again = granted(ask_as(store, nonce, Wanted::new(key("a")), LONG).await);
    assert_eq!(
        (again.token(), again.attempt()),
        (first.token(), first.attempt())
    );
    busy(ask(store, Wanted::new(key("a")), LONG).await);
}

/// The row says who owns it: also a lapsed lease is the attempt's own, until it is taken over.
pub async fn an_attempts_own_lease_is_given_again_after_it_lapsed<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let nonce = Nonce::random();
    let first = granted(ask_as(store, nonce, Wanted::new(key("a")), SHORT).await);
    lapse(store, &key("a")).await;
    let again = granted(ask_as(store, nonce, Wanted::new(key("a")), LONG).await);
    assert_eq!(
        (again.token(), again.attempt()),
        (first.token(), first.attempt())
    );
    busy(ask(store, Wanted::new(key("a")), LONG).await);
}

/// The row says who owns it: an attempt that was taken over owns nothing, its successor does.
pub async fn an_attempt_that_was_taken_over_is_told_that_another_runs<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let (first, second) = (Nonce::random(), Nonce::random());
    let stale = granted(ask_as(store, first, Wanted::new(key("a")), SHORT).await);
    lapse(store, &key("a")).await;
    let lease = granted(ask_as(store, second, Wanted::new(key("a")), LONG).await);
    busy(ask_as(store, first, Wanted::new(key("a")), LONG).await);
    let again = granted(ask_as(store, second, Wanted::new(key("a")), LONG).await);
    assert_eq!(again.token(), lease.token());
    drop(stale);
}

/// A lease that is given again lasts from then.
pub async fn an_attempts_own_claim_extends_its_lease<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let nonce = Nonce::random();
    let first = granted(ask_as(store, nonce, Wanted::new(key("a")), LONG).await);
    let again = granted(ask_as(store, nonce, Wanted::new(key("a")), LONG * 2).await);
    let left = remaining(store, &key("a")).await;
    assert!(left > LONG && left <= LONG * 2, "{left:?}");
    drop((first, again));
}

/// A done key is answered with its record, every time.
pub async fn a_done_key_is_replayed<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let record = finish(store, Wanted::new(key("a")), Keep::For(LONG)).await;
    for _ in 0..3 {
        let again = replayed(ask(store, Wanted::new(key("a")), LONG).await);
        assert_eq!(again, record);
    }
}

/// Another request under a running key is told which request has it.
// Field case B05.
pub async fn a_running_key_with_another_fingerprint_is_other<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let wanted = |number| Wanted::new(key("a")).fingerprint(print(number));
    let lease = begin(store, wanted(1), LONG).await;
    is_other(ask(store, wanted(2), LONG).await, 1);
    drop(lease);
}

/// Another request under a done key is told which request has it, not given its record.
pub async fn a_done_key_with_another_fingerprint_is_other<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let wanted = |number| Wanted::new(key("a")).fingerprint(print(number));
    finish(store, wanted(1), Keep::For(LONG)).await;
    is_other(ask(store, wanted(2), LONG).await, 1);
}

/// A repeat with an equal fingerprint is busy, then replayed.
pub async fn an_equal_fingerprint_is_the_same_request<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let wanted = |id| Wanted::new(key(id)).fingerprint(print(1));
    let lease = begin(store, wanted("a"), LONG).await;
    busy(ask(store, wanted("a"), LONG).await);
    finish(store, wanted("b"), Keep::For(LONG)).await;
    replayed(ask(store, wanted("b"), LONG).await);
    drop(lease);
}

/// Where the row or the claim has no fingerprint, nothing is compared.
pub async fn fingerprints_are_compared_only_where_both_sides_have_one<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let bare = |id| Wanted::new(key(id));
    let printed = |id| Wanted::new(key(id)).fingerprint(print(1));
    finish(store, printed("printed"), Keep::For(LONG)).await;
    finish(store, bare("bare"), Keep::For(LONG)).await;
    replayed(ask(store, bare("printed"), LONG).await);
    replayed(ask(store, printed("bare"), LONG).await);
    let leases = (
        begin(store, printed("running printed"), LONG).await,
        begin(store, bare("running bare"), LONG).await,
    );
    busy(ask(store, bare("running printed"), LONG).await);
    busy(ask(store, printed("running bare"), LONG).await);
    drop(leases);
}

/// A lapsed run left nothing to compare with: the request that takes over is the key's request.
pub async fn a_lapsed_key_is_taken_over_whatever_its_fingerprint_was<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let wanted = |number| Wanted::new(key("a")).fingerprint(print(number));
    let first = begin(store, wanted(1), SHORT).await;
    lapse(store, &key("a")).await;
    let second = take_over(store, &wanted(2), LONG).await;
    busy(ask(store, wanted(2), LONG).await);
    is_other(ask(store, wanted(1), LONG).await, 2);
    drop((first, second));
}

/// One id in two channels, or in two scopes, is two messages; so is one text that is cut elsewhere.
pub async fn keys_that_differ_by_channel_or_scope_are_different<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let keys = [
        Key::new("ab", "c", &["d"]),
        Key::new("a", "bc", &["d"]),
        Key::new("a", "b", &["cd"]),
        Key::new("abc", "", &["d"]),
        Key::new("", "abc", &["d"]),
        Key::new("", "", &["abcd"]),
    ];
    for key in &keys {
        finish(store, Wanted::new(key.clone()), Keep::For(LONG)).await;
    }
}

fn is_other(verdict: Verdict, number: u8) {
    match verdict {
        Verdict::Other { first } => assert_eq!(first, print(number)),
        other => panic!("not told of another request: {other:?}"),
    }
}
