//! Keys stay for their time; conversations are forgotten.

use std::time::Duration;

use bytes::Bytes;

use crate::record::Keep;
use crate::store::contract::{Claim, Nonce, Store, Verdict, Wanted};
use crate::store::queue::arrival::{Arrival, Stage};
use crate::store::queue::contract::Queue;
use crate::store::queue::turn::{Ended, Onward};
use crate::testing::queue::hand::{
    LONG, SHORT, bring, conversation, dead, done, end, kept, kill, message, next, stage, swept,
    take, take_one, texts,
};
use crate::testing::store::fixture::Fixture;

async fn handle<Q: Queue>(store: &Q, arrival: Arrival) {
    bring(store, arrival).await;
    let turn = take_one(store, LONG).await;
    assert_eq!(done(store, &turn).await, Onward::Ended);
}

/// A key goes when its time has ended, and its message is new again.
// Field case P91.
pub async fn a_key_goes_when_its_time_has_ended<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    let short = kept("a", Keep::For(SHORT));
    let long = kept("b", Keep::For(LONG));
    handle(store, long.clone()).await;
    handle(store, short.clone()).await;
    swept(store, &short).await;
    assert_eq!(stage(store, long).await, Stage::Done);
}

/// A message that is not done keeps its key, however long it takes, and so does a dead one.
// Field case P94.
pub async fn an_unfinished_message_keeps_its_key<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    let dying = kept("dead", Keep::For(Duration::ZERO));
    kill(store, dying.clone()).await;
    let waiting = kept("waiting", Keep::For(Duration::ZERO));
    bring(store, waiting.clone()).await;
    let running = kept("running", Keep::For(Duration::ZERO));
    bring(store, running.clone()).await;
    store.take(1, 1, LONG).await.unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(store.sweep(100).await.unwrap(), 0);
    assert_eq!(stage(store, dying).await, Stage::Dead);
    assert_eq!(stage(store, waiting).await, Stage::Waiting);
    assert_eq!(stage(store, running).await, Stage::Waiting);
}

/// A conversation's keys stay as long as it has new messages.
pub async fn a_new_message_extends_its_conversations_keys<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    let with =
        |id: &str, idle| kept(id, Keep::Conversation { idle }).conversation(conversation("a"));
    handle(store, with("a1", SHORT)).await;
    handle(store, with("a2", LONG)).await;
    let alone = kept("b", Keep::Conversation { idle: SHORT });
    handle(store, alone.clone()).await;
    let quiet = kept("c", Keep::Conversation { idle: SHORT }).conversation(conversation("c"));
    handle(store, quiet.clone()).await;
    swept(store, &alone).await;
    swept(store, &quiet).await;
    assert_eq!(stage(store, with("a2", SHORT)).await, Stage::Done);
}

/// A sweep removes no more keys than its limit.
pub async fn a_sweep_keeps_its_limit<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    for id in ["a", "b", "c"] {
        handle(store, kept(id, Keep::For(Duration::ZERO))).await;
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert!(store.sweep(2).await.unwrap() <= 2);
}

/// A forgotten conversation's messages go, waiting and dead ones; their keys still answer.
pub async fn a_forgotten_conversations_messages_go<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    kill(store, message("a", "a1")).await;
    bring(store, message("a", "a2")).await;
    bring(store, message("b", "b1")).await;
    assert_eq!(store.forget(&conversation("a")).await.unwrap(), 2);
    assert!(store.dead(None, 10).await.unwrap().is_empty());
    assert_eq!(texts(&store.waiting(10).await.unwrap()), ["b1"]);
    for id in ["a1", "a2"] {
        assert_eq!(stage(store, message("a", id)).await, Stage::Done);
    }
    assert_eq!(texts(&take_one(store, LONG).await.messages), ["b1"]);
}

/// A message that is handled while its conversation is forgotten ends without a trace.
pub async fn a_run_that_ends_after_forgetting_leaves_nothing<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring(store, message("a", "a1")).await;
    let turn = take_one(store, LONG).await;
    store.forget(&conversation("a")).await.unwrap();
    let onward = end(store, &turn, dead(1)).await;
    assert_eq!(onward, Onward::Ended);
    assert!(store.dead(None, 10).await.unwrap().is_empty());
    bring(store, message("a", "a2")).await;
    assert_eq!(texts(&take_one(store, LONG).await.messages), ["a2"]);
}

/// The request of a message that is done can be kept, and only that.
pub async fn a_kept_request_stays_with_its_key<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring(store, message("a", "a1")).await;
    bring(store, message("a", "a2")).await;
    let turn = take_one(store, LONG).await;
    assert_eq!(kept_of(store, "a1").await, None);
    for _ in 0..2 {
        assert_eq!(texts(&next(end(store, &turn, Ended::Kept).await)), ["a2"]);
    }
    assert_eq!(kept_of(store, "a1").await.as_deref(), Some(&b"a1"[..]));
    assert_eq!(kept_of(store, "a2").await, None);
    assert_eq!(stage(store, message("a", "a1")).await, Stage::Done);
}

/// A kept request goes when its conversation is forgotten; its key still answers.
pub async fn a_forgotten_conversations_kept_requests_go<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring(store, message("a", "a1")).await;
    let turn = take_one(store, LONG).await;
    end(store, &turn, Ended::Kept).await;
    assert_eq!(store.forget(&conversation("a")).await.unwrap(), 1);
    assert_eq!(kept_of(store, "a1").await, None);
    assert_eq!(stage(store, message("a", "a1")).await, Stage::Done);
}

async fn kept_of<Q: Queue>(store: &Q, id: &str) -> Option<Bytes> {
    store.kept(&message("a", id).key).await.unwrap()
}

/// A kept request goes with its key.
pub async fn a_kept_request_goes_with_its_key<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    let arrival = kept("a", Keep::For(SHORT));
    bring(store, arrival.clone()).await;
    let turn = take_one(store, LONG).await;
    assert_eq!(end(store, &turn, Ended::Kept).await, Onward::Ended);
    swept(store, &arrival).await;
    assert_eq!(store.kept(&arrival.key).await.unwrap(), None);
}

/// Claims and the inbox do not see each other's keys.
pub async fn an_inbox_has_keys_of_its_own<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    let arrival = message("a", "a1");
    bring(store, arrival.clone()).await;
    let wanted = vec![Wanted::new(arrival.key.clone())];
    let claim = Claim::new(Nonce::random(), LONG, wanted);
    let verdicts = store.claim(&claim).await.unwrap();
    assert!(matches!(verdicts[..], [Verdict::Run(_)]));
    assert_eq!(stage(store, arrival).await, Stage::Waiting);
    assert!(take(store, LONG).await.len() == 1);
}
