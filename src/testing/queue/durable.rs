//! What an inbox keeps through a restart.

use crate::store::queue::arrival::Stage;
use crate::store::queue::contract::Queue;
use crate::testing::queue::hand::{
    LONG, SHORT, bring, bring_all, done, kill, message, next, stage, take, take_one, take_soon,
    texts,
};
use crate::testing::store::fixture::Fixture;

/// Waiting and dead messages, keys, and turns survive a restart.
pub async fn messages_survive_a_restart<F: Fixture<Store: Queue>>(
    fixture: F,
    reopen: impl AsyncFn(F) -> F,
) {
    let store = fixture.store();
    let letter = kill(store, message("a", "a1")).await;
    bring_all(store, "a", &["a2", "a3"]).await;
    let turn = take_one(store, LONG).await;
    bring(store, message("b", "b1")).await;
    let fixture = reopen(fixture).await;
    let store = fixture.store();
    assert_eq!(store.dead(None, 10).await.unwrap(), [letter]);
    assert_eq!(texts(&take_one(store, LONG).await.messages), ["b1"]);
    assert_eq!(texts(&next(done(store, &turn).await)), ["a3"]);
    assert_eq!(stage(store, message("a", "a2")).await, Stage::Done);
}

/// A turn lapses through a restart; places and tokens rise through it.
pub async fn a_turn_lapses_through_a_restart<F: Fixture<Store: Queue>>(
    fixture: F,
    reopen: impl AsyncFn(F) -> F,
) {
    let store = fixture.store();
    assert!(store.is_durable());
    bring_all(store, "a", &["a1"]).await;
    let before = take_one(store, SHORT).await;
    let fixture = reopen(fixture).await;
    let store = fixture.store();
    bring_all(store, "a", &["a2"]).await;
    let after = take_soon(store, LONG).await;
    assert!(after.hold.token > before.hold.token);
    assert_eq!(texts(&after.messages), ["a1", "a2"]);
    assert_eq!(after.messages[0].attempt, 2);
    assert!(take(store, LONG).await.is_empty());
}
