//! Clauses on how long rows are kept.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::key::{Conversation, Key};
use crate::record::Keep;
use crate::store::contract::{Store, Verdict, Wanted};
use crate::testing::store::fixture::Fixture;
use crate::testing::store::hand::{
    LONG, SHORT, ask, begin, done, finish, is_absent, key, lapse, remaining, swept, take_over,
    until,
};

/// Until its time has ended, a record is kept.
pub async fn a_record_is_kept_for_its_time<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let record = finish(store, Wanted::new(key("a")), Keep::For(LONG)).await;
    assert_eq!(store.sweep(100).await.unwrap(), 0);
    assert_eq!(done(store, &key("a")).await, record);
}

/// A record goes when its time has ended, and not those whose time has not.
pub async fn a_record_goes_when_its_time_has_ended<F: Fixture>(fixture: F) {
    let store = fixture.store();
    finish(store, Wanted::new(key("long")), Keep::For(LONG)).await;
    finish(store, Wanted::new(key("short")), Keep::For(SHORT)).await;
    swept(store, &key("short")).await;
    done(store, &key("long")).await;
}

/// A record whose time has ended is as good as none, whether it was swept or not.
pub async fn a_record_whose_time_has_ended_counts_no_more<F: Fixture>(fixture: F) {
    let store = fixture.store();
    finish(store, Wanted::new(key("a")), Keep::For(SHORT)).await;
    finish(store, said("a", "1"), idle(SHORT)).await;
    for wanted in [Wanted::new(key("a")), said("a", "1")] {
        until("its time ends", async || {
            is_absent(store, &wanted.key).await.then_some(())
        })
        .await;
        assert_eq!(begin(store, wanted, LONG).await.attempt(), 1);
    }
}

/// Repeats, however many, do not keep a record alive.
// Field case B65.
pub async fn a_repeat_does_not_extend_retention<F: Fixture>(fixture: F) {
    let store = fixture.store();
    finish(store, Wanted::new(key("a")), Keep::For(SHORT)).await;
    goes_under_repeats(store, &Wanted::new(key("a"))).await;
}

/// A key whose row went is a new message: it runs as a first attempt.
pub async fn a_key_whose_row_went_is_new<F: Fixture>(fixture: F) {
    let store = fixture.store();
    finish(store, Wanted::new(key("a")), Keep::For(SHORT)).await;
    swept(store, &key("a")).await;
    assert_eq!(begin(store, Wanted::new(key("a")), LONG).await.attempt(), 1);
}

/// `Keep::Conversation` of a message without a conversation counts from the end of its run.
pub async fn a_record_without_a_conversation_is_kept_idle_after_its_run<F: Fixture>(fixture: F) {
    let store = fixture.store();
    finish(store, Wanted::new(key("long")), idle(LONG)).await;
    finish(store, Wanted::new(key("short")), idle(SHORT)).await;
    swept(store, &key("short")).await;
    done(store, &key("long")).await;
}

/// A conversation without a new message for `idle` keeps nothing.
pub async fn a_conversations_records_go_when_it_was_idle<F: Fixture>(fixture: F) {
    let store = fixture.store();
    finish(store, said("a", "1"), idle(SHORT)).await;
    finish(store, said("a", "2"), idle(SHORT)).await;
    finish(store, said("a", "long"), idle(LONG)).await;
    swept(store, &key("1")).await;
    swept(store, &key("2")).await;
    done(store, &key("long")).await;
}

/// Each new message of a conversation keeps all its records for another `idle`.
pub async fn a_new_message_extends_all_records_of_its_conversation<F: Fixture>(fixture: F) {
    let store = fixture.store();
    kept_by_new_messages(store, "a", async |_| {}).await;
}

/// A repeat is no new message, whether its key is done or running.
pub async fn a_repeat_does_not_extend_its_conversation<F: Fixture>(fixture: F) {
    let store = fixture.store();
    finish(store, said("a", "done"), idle(SHORT)).await;
    goes_under_repeats(store, &said("a", "done")).await;
}

/// A new message elsewhere keeps nothing here: another conversation, scope, or channel.
pub async fn another_conversation_extends_nothing<F: Fixture>(fixture: F) {
    let store = fixture.store();
    finish(store, said("a", "1"), idle(SHORT)).await;
    let mut number = 0;
    until("the row goes", async || {
        number += 1;
        for conversation in [
            Conversation::new("contract", "", "b"),
            Conversation::new("contract", "scope", "a"),
            Conversation::new("channel", "", "a"),
        ] {
            let id = format!("{number} {}", conversation.channel()) + conversation.scope();
            let wanted = Wanted::new(key(&id)).conversation(conversation);
            finish(store, wanted, idle(LONG)).await;
        }
        store.sweep(100).await.unwrap();
        is_absent(store, &key("1")).await.then_some(())
    })
    .await;
}

/// Closing ends a conversation's life, not at once its records: late repeats are answered still.
pub async fn a_closed_conversations_records_stay_for_idle<F: Fixture>(fixture: F) {
    let store = fixture.store();
    finish(store, said("a", "1"), idle(LONG)).await;
    finish(store, said("a", "2"), Keep::For(LONG)).await;
    store.close(&conversation("a")).await.unwrap();
    store.close(&conversation("never seen")).await.unwrap();
    assert_eq!(store.sweep(100).await.unwrap(), 0);
    done(store, &key("1")).await;
    done(store, &key("2")).await;
}

/// Once it was closed for `idle`, a conversation keeps nothing; what has its own time stays.
pub async fn a_closed_conversations_records_go_after_idle<F: Fixture>(fixture: F) {
    let store = fixture.store();
    finish(store, said("a", "1"), idle(SHORT)).await;
    finish(store, said("a", "2"), Keep::For(LONG)).await;
    store.close(&conversation("a")).await.unwrap();
    swept(store, &key("1")).await;
    done(store, &key("2")).await;
}

/// A new message after closing keeps all records of the conversation again.
pub async fn a_new_message_opens_a_closed_conversation_again<F: Fixture>(fixture: F) {
    let store = fixture.store();
    kept_by_new_messages(store, "a", async |store| {
        store.close(&conversation("a")).await.unwrap();
    })
    .await;
}

/// A running row is never swept, lapsed or not: who takes it over knows that it is not the first.
// Field case B67.
pub async fn a_sweep_removes_no_running_row<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lease = begin(store, Wanted::new(key("running")), LONG).await;
    let lapsed = begin(store, said("a", "lapsed"), SHORT).await;
    lapse(store, &key("lapsed")).await;
    assert_eq!(store.sweep(100).await.unwrap(), 0);
    assert!(remaining(store, &key("running")).await > LONG / 2);
    let next = take_over(store, &said("a", "lapsed"), LONG).await;
    assert_eq!(next.attempt(), 2);
    drop((lease, lapsed));
}

/// A sweep is a small step, also where much is to go; all steps together remove all of it.
pub async fn a_sweep_removes_no_more_than_its_limit<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let keys: Vec<Key> = (0..20).map(|number| key(&number.to_string())).collect();
    for key in &keys {
        finish(store, Wanted::new(key.clone()), Keep::For(SHORT)).await;
    }
    sleep(SHORT * 2).await;
    until("all rows are gone", async || {
        assert!(store.sweep(3).await.unwrap() <= 3);
        for key in &keys {
            if !is_absent(store, key).await {
                return None;
            }
        }
        Some(())
    })
    .await;
}

fn conversation(id: &str) -> Conversation {
    Conversation::new("contract", "", id)
}

/// The message `id` in a conversation.
fn said(conversation_id: &str, id: &str) -> Wanted {
    Wanted::new(key(id)).conversation(conversation(conversation_id))
}

fn idle(idle: Duration) -> Keep {
    Keep::Conversation { idle }
}

/// Repeats a done message until its row is gone.
async fn goes_under_repeats<S: Store>(store: &S, wanted: &Wanted) {
    until("the record goes under its repeats", async || {
        store.sweep(100).await.unwrap();
        match ask(store, wanted.clone(), LONG).await {
            Verdict::Replay(_) => None,
            Verdict::Run(_) => Some(()),
            other => panic!("neither replayed nor granted: {other:?}"),
        }
    })
    .await;
}

/// Sends new messages for three times `idle`, and sees that the first one's record is there.
///
/// If this process paused for too long between two messages, the record rightly went: once more.
async fn kept_by_new_messages<S: Store>(store: &S, name: &str, between: impl AsyncFn(&S)) {
    const IDLE: Duration = Duration::from_millis(400);
    for trial in 0..20 {
        let id = |number: usize| format!("{trial} {number}");
        let conversation = format!("{name} {trial}");
        let mut last = Instant::now();
        let mut longest = Duration::ZERO;
        for number in 0..12 {
            let sent = Instant::now();
            finish(store, said(&conversation, &id(number)), idle(IDLE)).await;
            between(store).await;
            store.sweep(100).await.unwrap();
            longest = longest.max(last.elapsed());
            last = sent;
            sleep(IDLE / 4).await;
        }
        let kept = !is_absent(store, &key(&id(0))).await;
        longest = longest.max(last.elapsed());
        if longest < IDLE * 3 / 4 {
            assert!(kept, "new messages did not keep the first one's record");
            return;
        }
    }
    panic!("this machine pauses too often to measure anything");
}
