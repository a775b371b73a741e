//! Turns: one per line, in order, and lapsing.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::{join, join_all};
use tokio::task::yield_now;
use tokio::time::sleep;

use crate::store::lease::Standing;
use crate::store::queue::contract::Queue;
use crate::store::queue::turn::{Ended, Onward, Report, Then, Turn};
use crate::testing::queue::hand::{
    LONG, SHORT, bring, bring_all, done, give_back, lone, message, renew, report, stranger, take,
    take_one, take_soon, texts, until,
};
use crate::testing::store::fixture::Fixture;

/// A turn names the line's messages in the order in which they came.
pub async fn a_turn_has_its_messages_in_order<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring_all(store, "a", &["z", "y", "x"]).await;
    let turn = take_one(store, LONG).await;
    assert_eq!(texts(&turn.messages), ["z", "y", "x"]);
    assert!(turn.messages.is_sorted_by_key(|message| message.place));
}

/// A turn that somebody has is given to nobody else.
pub async fn a_turn_is_given_once<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring_all(store, "a", &["a1", "a2"]).await;
    take_one(store, LONG).await;
    bring(store, message("a", "a3")).await;
    assert!(take(store, LONG).await.is_empty());
}

/// Of many takers at once one has the turn.
// Field cases B119, P96.
pub async fn of_64_takers_at_once_one_has_the_turn<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    for round in 0..10 {
        bring(store, lone(&format!("m{round}"))).await;
        let takers = (0..64).map(|_| take(store, LONG));
        let turns = join_all(takers).await;
        assert_eq!(turns.iter().flatten().count(), 1);
    }
}

/// Lines are independent: all of them are due at once.
pub async fn lines_do_not_wait_for_each_other<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring_all(store, "a", &["a1", "a2"]).await;
    bring_all(store, "b", &["b1"]).await;
    bring(store, lone("c")).await;
    bring(store, lone("d")).await;
    assert_eq!(take(store, LONG).await.len(), 4);
}

/// A take gives no more lines, and no more messages of each, than it asks for.
pub async fn a_take_keeps_its_limits<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    for line in ["a", "b", "c"] {
        bring_all(store, line, &[&format!("{line}1"), &format!("{line}2")]).await;
    }
    let turns = store.take(2, 1, LONG).await.unwrap();
    assert_eq!(turns.len(), 2);
    assert!(turns.iter().all(|turn| turn.messages.len() == 1));
    assert_eq!(take(store, LONG).await.len(), 1);
}

/// The line that was due first is taken first.
pub async fn the_longest_due_line_comes_first<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    for line in ["a", "b", "c"] {
        bring(store, message(line, line)).await;
        sleep(Duration::from_millis(5)).await;
    }
    for line in ["a", "b", "c"] {
        let turn = store.take(1, 16, LONG).await.unwrap().pop().unwrap();
        assert_eq!(texts(&turn.messages), [line]);
        assert!(
            turn.overdue >= Duration::from_millis(4),
            "{:?}",
            turn.overdue
        );
    }
}

/// A lapsed turn is taken by another, with a higher token; the attempt is counted for the first
/// message and for no other.
// Field case P99.
pub async fn a_lapsed_turn_is_taken_over<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring_all(store, "a", &["a1", "a2"]).await;
    let first = take_one(store, SHORT).await;
    let second = take_soon(store, SHORT).await;
    assert!(second.hold.token > first.hold.token);
    let third = take_soon(store, LONG).await;
    let attempts: Vec<u32> = third.messages.iter().map(|m| m.attempt).collect();
    assert_eq!(attempts, [3, 1]);
}

/// Attempts of one message are not counted for the next.
pub async fn the_next_message_begins_at_one<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring_all(store, "a", &["a1", "a2"]).await;
    take_one(store, SHORT).await;
    let turn = take_soon(store, SHORT).await;
    let hold = turn.hold;
    let first = Report::new(hold, turn.messages[0].place, Ended::Done, Then::GoOn);
    assert_eq!(report(store, first).await, Onward::Next(Vec::new()));
    let next = take_soon(store, LONG).await;
    assert_eq!(texts(&next.messages), ["a2"]);
    assert_eq!(next.messages[0].attempt, 2);
}

/// Until somebody takes it over, a lapsed turn can be renewed and its messages end.
pub async fn a_lapsed_turn_is_still_its_holders<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring_all(store, "a", &["a1"]).await;
    let turn = take_one(store, Duration::from_millis(1)).await;
    sleep(Duration::from_millis(5)).await;
    assert_eq!(renew(store, turn.hold, LONG).await, Standing::Renewed);
    assert!(take(store, LONG).await.is_empty());
    assert_eq!(done(store, &turn).await, Onward::Ended);
}

/// A renewed turn lasts from its renewal.
pub async fn a_renewed_turn_lasts<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring_all(store, "a", &["a1"]).await;
    let turn = take_one(store, LONG).await;
    assert_eq!(renew(store, turn.hold, SHORT).await, Standing::Renewed);
    let next = take_soon(store, LONG).await;
    assert!(next.hold.token > turn.hold.token);
    assert_eq!(renew(store, turn.hold, LONG).await, Standing::Lost);
}

/// A renewal without a turn is lost.
pub async fn a_renewal_without_a_turn_is_lost<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    let line = message("a", "a1").line();
    assert_eq!(renew(store, stranger(line), LONG).await, Standing::Lost);
    bring_all(store, "a", &["a1"]).await;
    assert_eq!(renew(store, stranger(line), LONG).await, Standing::Lost);
    let turn = take_one(store, LONG).await;
    done(store, &turn).await;
    assert_eq!(renew(store, turn.hold, LONG).await, Standing::Lost);
}

/// A turn that is given back is due at once, and no attempt is counted.
pub async fn a_turn_given_back_is_due_at_once<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring_all(store, "a", &["a1", "a2"]).await;
    let first = take_one(store, LONG).await;
    assert_eq!(give_back(store, first.hold).await, Onward::Ended);
    let second = take_one(store, LONG).await;
    assert_eq!(texts(&second.messages), ["a1", "a2"]);
    assert_eq!(second.messages[0].attempt, 1);
    assert!(second.hold.token > first.hold.token);
}

/// Giving back after a message leaves the rest to the next.
pub async fn a_turn_can_end_after_a_message<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring_all(store, "a", &["a1", "a2"]).await;
    let turn = take_one(store, LONG).await;
    let place = turn.messages[0].place;
    let ended = Ended::Done;
    let last = Report::new(turn.hold, place, ended, Then::GiveBack);
    assert_eq!(report(store, last).await, Onward::Ended);
    assert_eq!(texts(&take_one(store, LONG).await.messages), ["a2"]);
}

/// Tokens rise from turn to turn, also through a line's end.
pub async fn tokens_of_turns_rise<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    let mut last = None;
    for id in ["a1", "a2", "a3"] {
        bring_all(store, "a", &[id]).await;
        let turn = take_one(store, LONG).await;
        assert!(Some(turn.hold.token) > last);
        last = Some(turn.hold.token);
        assert_eq!(done(store, &turn).await, Onward::Ended);
    }
}

/// Takers and senders at once: each message is handled once, in order.
pub async fn takers_and_senders_at_once_keep_the_order<F: Fixture<Store: Queue>>(fixture: F) {
    const LINES: usize = 5;
    const MESSAGES: usize = 40;
    let store = fixture.store();
    let send = async |line: usize| {
        for n in 0..MESSAGES {
            bring(
                store,
                message(&format!("l{line}"), &format!("{line}-{n:03}")),
            )
            .await;
        }
    };
    let handled = Mutex::new(vec![Vec::new(); LINES]);
    let left = AtomicUsize::new(LINES * MESSAGES);
    let note = |text: String| {
        let line: usize = text[..1].parse().unwrap();
        handled.lock().unwrap()[line].push(text);
        left.fetch_sub(1, Ordering::Relaxed);
    };
    let handle = async || {
        while left.load(Ordering::Relaxed) > 0 {
            for turn in store.take(2, 3, LONG).await.unwrap() {
                handle_all(store, turn, note).await;
            }
            yield_now().await;
        }
    };
    let senders = join_all((0..LINES).map(send));
    let takers = join_all((0..4).map(|_| handle()));
    join(senders, takers).await;
    for (line, texts) in handled.into_inner().unwrap().iter().enumerate() {
        let all: Vec<String> = (0..MESSAGES).map(|n| format!("{line}-{n:03}")).collect();
        assert_eq!(*texts, all);
    }
    until("all lines end", async || {
        (store.backlog().await.unwrap().lines == 0).then_some(())
    })
    .await;
}

/// Handles the messages of a turn to its end.
async fn handle_all<Q: Queue>(store: &Q, mut turn: Turn, handle: impl Fn(String)) {
    while !turn.messages.is_empty() {
        handle(texts(&turn.messages).remove(0));
        match done(store, &turn).await {
            Onward::Next(messages) => turn.messages = messages,
            Onward::Ended => return,
            Onward::Lost => panic!("a turn was lost"),
        }
    }
}
