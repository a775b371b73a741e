//! Messages come: each is kept once.

use bytes::Bytes;

use crate::key::Key;
use crate::store::queue::arrival::{Accepted, Arrival, Stage};
use crate::store::queue::contract::Queue;
use crate::store::queue::turn::Turn;
use crate::testing::queue::hand::{
    LONG, SHORT, accept, begin, bring, dead, done, end, kill, lone, message, only, stage, take,
    take_one, take_soon, texts,
};
use crate::testing::store::fixture::Fixture;

/// A new message waits, with its raw request.
pub async fn a_new_message_is_kept<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring(store, message("a", "a1")).await;
    let turn = take_one(store, LONG).await;
    assert_eq!(texts(&turn.messages), ["a1"]);
    assert_eq!(turn.messages[0].attempt, 1);
    assert_eq!(turn.hold.line, message("a", "a1").line());
}

/// A repeat changes nothing, however far the message has come.
pub async fn a_repeat_is_told_how_far_its_message_came<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring(store, message("a", "a1")).await;
    assert_eq!(stage(store, message("a", "a1")).await, Stage::Waiting);
    let turn = take_one(store, LONG).await;
    assert_eq!(stage(store, message("a", "a1")).await, Stage::Waiting);
    done(store, &turn).await;
    assert_eq!(stage(store, message("a", "a1")).await, Stage::Done);
    kill(store, message("a", "a2")).await;
    assert_eq!(stage(store, message("a", "a2")).await, Stage::Dead);
    assert_eq!(texts_of_all(store).await, Vec::<String>::new());
}

async fn texts_of_all<Q: Queue>(store: &Q) -> Vec<String> {
    texts(&store.waiting(100).await.unwrap())
}

/// A repeat with other bytes changes nothing either.
pub async fn the_first_bytes_count<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring(store, message("a", "a1")).await;
    let mut other = message("a", "a1");
    other.raw = Bytes::from_static(b"other");
    assert_eq!(stage(store, other).await, Stage::Waiting);
    assert_eq!(texts_of_all(store).await, ["a1"]);
}

/// Messages of one call are answered by themselves, and stand in the call's order.
pub async fn a_calls_messages_stand_in_its_order<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring(store, message("a", "m5")).await;
    let ids = ["m9", "m5", "m1", "m7", "m3"];
    let arrivals: Vec<Arrival> = ids.iter().map(|id| message("a", id)).collect();
    let answers = store.accept(&arrivals, None).await.unwrap();
    let is_new = |answer: &Accepted| matches!(answer, Accepted::New { .. });
    let new: Vec<bool> = answers.iter().map(is_new).collect();
    assert_eq!(new, [true, false, true, true, true]);
    assert_eq!(texts_of_all(store).await, ["m5", "m9", "m1", "m7", "m3"]);
}

/// Keys are told apart by channel and scope.
pub async fn keys_differ_by_channel_and_scope<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    for (channel, scope) in [("a", "b"), ("ab", ""), ("", "ab"), ("b", "a")] {
        let mut arrival = lone("1");
        arrival.key = Key::new(channel, scope, &["1"]);
        bring(store, arrival).await;
    }
    assert_eq!(take(store, LONG).await.len(), 4);
}

/// Texts and bytes of every kind come back as they were.
pub async fn odd_texts_and_bytes_come_back<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    let raw = Bytes::from_static(b"\0\xff\xfe{\"a\":1}");
    for id in ["a\0b", "é", "\u{10ffff}", "'; --", "%s"] {
        let mut arrival = message(id, id);
        arrival.raw = raw.clone();
        bring(store, arrival.clone()).await;
        assert_eq!(stage(store, arrival).await, Stage::Waiting, "{id:?}");
        let turn = take_one(store, LONG).await;
        assert_eq!(turn.messages[0].raw, raw, "{id:?}");
    }
}

/// A call that begins a line can ask for its turn, and has it at once.
pub async fn a_begun_line_is_given_with_the_answer<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    let (hold, place) = begin(store, message("a", "a1"), LONG).await;
    assert!(take(store, LONG).await.is_empty());
    let turn = Turn::new(hold, SHORT, store.waiting(1).await.unwrap());
    assert_eq!(turn.messages[0].place, place);
    done(store, &turn).await;
    assert_eq!(stage(store, message("a", "a1")).await, Stage::Done);
}

/// Only the first message of a begun line carries the turn; the others are read with it.
pub async fn a_begun_line_is_given_once<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    let arrivals = [message("a", "a1"), message("a", "a2"), message("b", "b1")];
    let answers = store.accept(&arrivals, Some(LONG)).await.unwrap();
    let given = |answer: &Accepted| matches!(answer, Accepted::New { turn: Some(_), .. });
    let given: Vec<bool> = answers.iter().map(given).collect();
    assert_eq!(given, [true, false, true]);
}

/// A line that exists is not given, whoever has it, and however it waits.
pub async fn a_line_that_exists_is_not_given<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring(store, message("a", "a1")).await;
    let second = store.accept(&[message("a", "a2")], Some(LONG)).await;
    assert!(matches!(
        only(second.unwrap()),
        Accepted::New { turn: None, .. }
    ));
    let turn = take_one(store, LONG).await;
    assert_eq!(texts(&turn.messages), ["a1", "a2"]);
    let third = store.accept(&[message("a", "a3")], Some(LONG)).await;
    assert!(matches!(
        only(third.unwrap()),
        Accepted::New { turn: None, .. }
    ));
}

/// A given turn lapses as a taken one does, and the attempt is counted.
pub async fn a_given_turn_lapses<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    let (first, _) = begin(store, message("a", "a1"), SHORT).await;
    let turn = take_soon(store, LONG).await;
    assert!(turn.hold.token > first.token);
    assert_eq!(turn.messages[0].attempt, 2);
}

/// After a line has ended, its next message begins it again.
pub async fn a_line_that_ended_begins_again<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    for id in ["a1", "a2"] {
        let (hold, place) = begin(store, message("a", id), LONG).await;
        let waiting = store.waiting(1).await.unwrap();
        assert_eq!(waiting[0].place, place);
        end(store, &Turn::new(hold, SHORT, waiting), dead(1)).await;
    }
}

/// The same message 64 times at once is kept once.
// Field cases P98, P103.
pub async fn of_64_copies_at_once_one_is_new<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    let copies = (0..64).map(|_| accept(store, message("a", "a1")));
    let answers = futures_util::future::join_all(copies).await;
    let is_new = |answer: &&Accepted| matches!(answer, Accepted::New { .. });
    assert_eq!(answers.iter().filter(is_new).count(), 1);
    assert_eq!(texts_of_all(store).await, ["a1"]);
}
