//! Dead messages: listed, redriven, buried.

use crate::store::queue::arrival::Stage;
use crate::store::queue::backlog::Death;
use crate::store::queue::contract::Queue;
use crate::store::queue::turn::Onward;
use crate::testing::queue::hand::{
    LONG, bring_all, dead, done, end, kill, lone, message, next, stage, take, take_one, texts,
};
use crate::testing::store::fixture::Fixture;

/// A redriven message comes back as one that was never tried.
pub async fn a_redriven_message_is_handled_again<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    let letter = kill(store, message("a", "a1")).await;
    assert_eq!(store.redrive(&[letter.death]).await.unwrap(), 1);
    assert_eq!(stage(store, message("a", "a1")).await, Stage::Waiting);
    let turn = take_one(store, LONG).await;
    let first = &turn.messages[0];
    assert_eq!((&first.raw, first.attempt), (&letter.raw, 1));
    assert_eq!(first.received_at, letter.received_at);
    assert_eq!(done(store, &turn).await, Onward::Ended);
    assert_eq!(stage(store, message("a", "a1")).await, Stage::Done);
}

/// A death is undone once, and never another death of the same message.
pub async fn a_death_is_undone_once<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    let first = kill(store, message("a", "a1")).await;
    let deaths = [first.death, first.death];
    assert_eq!(store.redrive(&deaths).await.unwrap(), 1);
    assert_eq!(store.redrive(&deaths).await.unwrap(), 0);
    let turn = take_one(store, LONG).await;
    end(store, &turn, dead(1)).await;
    assert_eq!(store.redrive(&deaths).await.unwrap(), 0);
    let second = store.dead(None, 10).await.unwrap().pop().unwrap();
    assert!(second.death > first.death);
    assert_eq!(store.redrive(&[Death::new(i64::MAX)]).await.unwrap(), 0);
}

/// A redriven message comes behind those that passed it, and one at a time with them.
pub async fn a_redriven_message_comes_last<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    let letter = kill(store, message("a", "a1")).await;
    bring_all(store, "a", &["a2"]).await;
    let turn = take_one(store, LONG).await;
    assert_eq!(store.redrive(&[letter.death]).await.unwrap(), 1);
    assert!(take(store, LONG).await.is_empty());
    assert_eq!(texts(&next(done(store, &turn).await)), ["a1"]);
}

/// A buried message is gone, and its key stays.
pub async fn a_buried_message_is_gone<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    let letter = kill(store, message("a", "a1")).await;
    assert_eq!(store.bury(&[letter.death, letter.death]).await.unwrap(), 1);
    assert_eq!(store.bury(&[letter.death]).await.unwrap(), 0);
    assert_eq!(store.redrive(&[letter.death]).await.unwrap(), 0);
    assert!(store.dead(None, 10).await.unwrap().is_empty());
    assert_eq!(stage(store, message("a", "a1")).await, Stage::Done);
}

/// Dead messages are listed page by page, in the order of their deaths.
pub async fn dead_messages_are_listed_by_pages<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    for id in ["c", "a", "b"] {
        kill(store, lone(id)).await;
    }
    let mut after = None;
    let mut listed = Vec::new();
    while let Some(letter) = store.dead(after, 1).await.unwrap().pop() {
        after = Some(letter.death);
        listed.push(letter.raw);
    }
    assert_eq!(listed, ["c", "a", "b"]);
}

/// The backlog counts what waits, what runs and what is dead.
pub async fn the_backlog_counts<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    let empty = store.backlog().await.unwrap();
    assert_eq!(empty, crate::store::queue::backlog::Backlog::default());
    kill(store, message("a", "a1")).await;
    bring_all(store, "a", &["a2", "a3"]).await;
    bring_all(store, "b", &["b1"]).await;
    take(store, LONG).await;
    let backlog = store.backlog().await.unwrap();
    assert_eq!((backlog.waiting, backlog.lines, backlog.dead), (3, 2, 1));
    assert!(backlog.oldest.unwrap() < LONG);
}

/// Waiting messages are listed in order, no more than asked for.
pub async fn waiting_messages_are_listed<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring_all(store, "a", &["1"]).await;
    bring_all(store, "b", &["2"]).await;
    bring_all(store, "a", &["3"]).await;
    assert_eq!(texts(&store.waiting(10).await.unwrap()), ["1", "2", "3"]);
    assert_eq!(texts(&store.waiting(2).await.unwrap()), ["1", "2"]);
}
