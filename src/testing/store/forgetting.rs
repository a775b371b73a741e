//! Clauses on forgetting a conversation.

use std::sync::Arc;

use futures_util::future::{join, join_all};

use crate::key::{Conversation, Key};
use crate::record::{Keep, Payload};
use crate::store::contract::{Store, Wanted};
use crate::store::lease::Settled;
use crate::testing::store::fixture::Fixture;
use crate::testing::store::hand::{
    LONG, SHORT, ask, begin, busy, done, finish, key, lapse, record, replayed, settle, swept,
    take_over,
};

/// The payload goes, headers too; a repeat is still told that it was done.
pub async fn a_forgotten_record_loses_its_payload_and_still_answers<F: Fixture>(fixture: F) {
    let store = fixture.store();
    finish(store, said("a", "1"), Keep::For(LONG)).await;
    store.forget(&conversation("a")).await.unwrap();
    is_tombstone(store, &key("1")).await;
    let repeat = replayed(ask(store, said("a", "1"), LONG).await);
    assert_eq!(*repeat.payload(), Payload::Forgotten);
}

/// A run that was going on records a tombstone.
pub async fn a_run_that_ends_after_forgetting_leaves_no_payload<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lease = begin(store, said("a", "1"), LONG).await;
    store.forget(&conversation("a")).await.unwrap();
    busy(ask(store, said("a", "1"), LONG).await);
    let late = lease.record(record("late"), Keep::For(LONG));
    assert_eq!(settle(store, late).await, Settled::Applied);
    is_tombstone(store, &key("1")).await;
}

/// The mark belongs to the key, not to the run: who takes over records a tombstone too.
pub async fn the_mark_survives_a_take_over<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let stale = begin(store, said("a", "1"), SHORT).await;
    store.forget(&conversation("a")).await.unwrap();
    let lease = take_over(store, &said("a", "1"), LONG).await;
    assert_eq!(lease.attempt(), 2);
    let own = lease.record(record("own"), Keep::For(LONG));
    assert_eq!(settle(store, own).await, Settled::Applied);
    is_tombstone(store, &key("1")).await;
    drop(stale);
}

/// A release of a marked row does not remove it, or the next run would bring a payload back.
pub async fn a_release_after_forgetting_leaves_a_tombstone<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lease = begin(store, said("a", "1"), LONG).await;
    store.forget(&conversation("a")).await.unwrap();
    assert_eq!(settle(store, lease.release()).await, Settled::Applied);
    is_tombstone(store, &key("1")).await;
    replayed(ask(store, said("a", "1"), LONG).await);
    store.sweep(100).await.unwrap();
    is_tombstone(store, &key("1")).await;
}

/// A row whose lease has lapsed is running still, and is marked.
pub async fn a_lapsed_run_is_marked_too<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lease = begin(store, said("a", "1"), SHORT).await;
    lapse(store, &key("1")).await;
    store.forget(&conversation("a")).await.unwrap();
    let late = lease.record(record("late"), Keep::For(LONG));
    assert_eq!(settle(store, late).await, Settled::Applied);
    is_tombstone(store, &key("1")).await;
}

/// Neither other conversations nor the same id in another scope or channel are concerned.
pub async fn other_conversations_are_left_alone<F: Fixture>(fixture: F) {
    let store = fixture.store();
    finish(store, said("a", "a"), Keep::For(LONG)).await;
    let others = [
        conversation("b"),
        conversation(""),
        Conversation::new("contract", "scope", "a"),
        Conversation::new("channel", "", "a"),
    ];
    for (number, other) in others.into_iter().enumerate() {
        let wanted = Wanted::new(key(&number.to_string())).conversation(other);
        finish(store, wanted, Keep::For(LONG)).await;
    }
    finish(store, Wanted::new(key("none")), Keep::For(LONG)).await;
    store.forget(&conversation("a")).await.unwrap();
    is_tombstone(store, &key("a")).await;
    for id in ["0", "1", "2", "3", "none"] {
        assert_eq!(done(store, &key(id)).await, record(id));
    }
}

/// Forgetting tells how many rows it concerned: done and running.
pub async fn forgetting_counts_its_rows<F: Fixture>(fixture: F) {
    let store = fixture.store();
    finish(store, said("a", "1"), Keep::For(LONG)).await;
    finish(store, said("a", "2"), Keep::For(LONG)).await;
    finish(store, said("b", "3"), Keep::For(LONG)).await;
    let lease = begin(store, said("a", "4"), LONG).await;
    assert_eq!(store.forget(&conversation("a")).await.unwrap(), 3);
    assert_eq!(store.forget(&conversation("never seen")).await.unwrap(), 0);
    drop(lease);
}

/// A forget whose answer was lost is sent again.
pub async fn forgetting_twice_is_harmless<F: Fixture>(fixture: F) {
    let store = fixture.store();
    finish(store, said("a", "1"), Keep::For(LONG)).await;
    let lease = begin(store, said("a", "2"), LONG).await;
    store.forget(&conversation("a")).await.unwrap();
    store.forget(&conversation("a")).await.unwrap();
    settle(store, lease.record(record("2"), Keep::For(LONG))).await;
    store.forget(&conversation("a")).await.unwrap();
    is_tombstone(store, &key("1")).await;
    is_tombstone(store, &key("2")).await;
}

/// Forgetting is about what was said, not about what will be.
pub async fn messages_after_forgetting_are_kept<F: Fixture>(fixture: F) {
    let store = fixture.store();
    finish(store, said("a", "before"), Keep::For(LONG)).await;
    store.forget(&conversation("a")).await.unwrap();
    finish(store, said("a", "after"), Keep::For(LONG)).await;
    assert_eq!(done(store, &key("after")).await, record("after"));
    is_tombstone(store, &key("before")).await;
}

/// A tombstone answers as long as the record would have, and goes then.
pub async fn a_tombstone_goes_when_the_records_time_has_ended<F: Fixture>(fixture: F) {
    let store = fixture.store();
    finish(store, said("a", "long"), Keep::For(LONG)).await;
    finish(store, said("a", "short"), Keep::For(SHORT)).await;
    let lease = begin(store, said("a", "running"), LONG).await;
    store.forget(&conversation("a")).await.unwrap();
    settle(store, lease.record(record("running"), Keep::For(SHORT))).await;
    swept(store, &key("short")).await;
    swept(store, &key("running")).await;
    is_tombstone(store, &key("long")).await;
}

/// Runs that end while their conversation is forgotten leave no payload behind.
pub async fn no_payload_survives_a_race_with_forgetting<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let ids: Vec<String> = (0..64).map(|number| number.to_string()).collect();
    let begin = ids.iter().map(|id| begin(store, said("a", id), LONG));
    let leases = join_all(begin).await;
    let conversation = conversation("a");
    let records = leases.into_iter().map(async |lease| {
        let record = record(lease.key().id());
        settle(store, lease.record(Arc::clone(&record), Keep::For(LONG))).await
    });
    let (settled, forgotten) = join(join_all(records), store.forget(&conversation)).await;
    assert!(settled.iter().all(|settled| *settled == Settled::Applied));
    assert_eq!(forgotten.unwrap(), 64);
    for id in &ids {
        is_tombstone(store, &key(id)).await;
    }
}

fn conversation(id: &str) -> Conversation {
    Conversation::new("contract", "", id)
}

fn said(conversation_id: &str, id: &str) -> Wanted {
    Wanted::new(key(id)).conversation(conversation(conversation_id))
}

async fn is_tombstone<S: Store>(store: &S, key: &Key) {
    let record = done(store, key).await;
    assert_eq!(*record.payload(), Payload::Forgotten);
    assert!(record.headers().is_empty(), "headers of a forgotten record");
}
