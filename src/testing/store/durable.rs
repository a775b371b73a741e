//! Clauses for stores whose rows survive a restart.
//!
//! Each takes a store and a function that closes it and opens it again at the same place.

use std::time::Duration;

use crate::key::Conversation;
use crate::record::{Keep, Payload};
use crate::store::contract::{Nonce, Store, Wanted};
use crate::store::lease::{Settled, Standing};
use crate::testing::store::fixture::Fixture;
use crate::testing::store::hand::{
    LONG, SHORT, ask, ask_as, begin, busy, done, finish, granted, key, record, remaining, renew,
    replayed, settle, swept, take_over,
};

/// What was recorded is replayed after a restart, byte by byte.
pub async fn records_survive_a_restart<F: Fixture>(fixture: F, reopen: impl AsyncFn(F) -> F) {
    let mut records = Vec::new();
    for number in 0..50 {
        let wanted = Wanted::new(key(&number.to_string()));
        records.push(finish(fixture.store(), wanted, Keep::For(LONG)).await);
    }
    let fixture = reopen(fixture).await;
    for (number, record) in records.iter().enumerate() {
        let wanted = Wanted::new(key(&number.to_string()));
        assert_eq!(replayed(ask(fixture.store(), wanted, LONG).await), *record);
    }
}

/// A run that goes on in another process keeps its lease while the store restarts.
pub async fn leases_survive_a_restart<F: Fixture>(fixture: F, reopen: impl AsyncFn(F) -> F) {
    let nonce = Nonce::random();
    let first = granted(ask_as(fixture.store(), nonce, Wanted::new(key("a")), LONG).await);
    let fixture = reopen(fixture).await;
    let store = fixture.store();
    let left = busy(ask(store, Wanted::new(key("a")), LONG).await);
    assert!(left > LONG / 2 && left <= LONG, "{left:?}");
    let again = granted(ask_as(store, nonce, Wanted::new(key("a")), LONG).await);
    assert_eq!((again.token(), again.attempt()), (first.token(), 1));
    assert_eq!(renew(store, &first, LONG).await, Standing::Renewed);
    let own = first.record(record("own"), Keep::For(LONG));
    assert_eq!(settle(store, own).await, Settled::Applied);
}

/// Time goes on while the store is closed.
pub async fn a_lease_lapses_through_a_restart<F: Fixture>(
    fixture: F,
    reopen: impl AsyncFn(F) -> F,
) {
    let first = begin(fixture.store(), Wanted::new(key("a")), SHORT).await;
    let fixture = reopen(fixture).await;
    let second = take_over(fixture.store(), &Wanted::new(key("a")), LONG).await;
    assert_eq!(second.attempt(), 2);
    assert!(second.token() > first.token());
}

/// No token is given twice, also if no row is left that has it.
pub async fn tokens_rise_through_a_restart<F: Fixture>(fixture: F, reopen: impl AsyncFn(F) -> F) {
    let mut fixture = fixture;
    let mut token = None;
    for _ in 0..3 {
        let lease = begin(fixture.store(), Wanted::new(key("a")), LONG).await;
        assert!(Some(lease.token()) > token, "the token did not rise");
        token = Some(lease.token());
        settle(fixture.store(), lease.release()).await;
        fixture = reopen(fixture).await;
    }
}

/// A row that went stays away.
pub async fn a_released_key_stays_released_through_a_restart<F: Fixture>(
    fixture: F,
    reopen: impl AsyncFn(F) -> F,
) {
    let lease = begin(fixture.store(), Wanted::new(key("a")), LONG).await;
    settle(fixture.store(), lease.release()).await;
    let fixture = reopen(fixture).await;
    let again = begin(fixture.store(), Wanted::new(key("a")), LONG).await;
    assert_eq!(again.attempt(), 1);
}

/// What was forgotten stays forgotten, and a running row stays marked.
pub async fn a_mark_survives_a_restart<F: Fixture>(fixture: F, reopen: impl AsyncFn(F) -> F) {
    let conversation = Conversation::new("contract", "", "a");
    let said = |id| Wanted::new(key(id)).conversation(conversation.clone());
    finish(fixture.store(), said("done"), Keep::For(LONG)).await;
    let lease = begin(fixture.store(), said("running"), LONG).await;
    fixture.store().forget(&conversation).await.unwrap();
    let fixture = reopen(fixture).await;
    let store = fixture.store();
    settle(store, lease.record(record("late"), Keep::For(LONG))).await;
    for id in ["done", "running"] {
        let record = done(store, &key(id)).await;
        assert_eq!(*record.payload(), Payload::Forgotten, "{id}");
    }
}

/// How long a conversation lives is counted on through a restart.
pub async fn a_conversation_lives_through_a_restart<F: Fixture>(
    fixture: F,
    reopen: impl AsyncFn(F) -> F,
) {
    let conversation = Conversation::new("contract", "", "a");
    let said = |id| Wanted::new(key(id)).conversation(conversation.clone());
    let keep = |idle: Duration| Keep::Conversation { idle };
    finish(fixture.store(), said("long"), keep(LONG)).await;
    finish(fixture.store(), said("short"), keep(SHORT)).await;
    let running = begin(fixture.store(), Wanted::new(key("running")), LONG).await;
    let fixture = reopen(fixture).await;
    let store = fixture.store();
    swept(store, &key("short")).await;
    done(store, &key("long")).await;
    assert!(remaining(store, running.key()).await > LONG / 2);
    assert_eq!(store.forget(&conversation).await.unwrap(), 1);
}
