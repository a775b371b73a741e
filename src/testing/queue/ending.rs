//! Messages end: done, later, or dead.

use std::time::Duration;

use crate::store::queue::arrival::Stage;
use crate::store::queue::contract::Queue;
use crate::store::queue::turn::{Behind, Ended, Onward, Report, Then};
use crate::testing::queue::hand::{
    LONG, SHORT, bring, bring_all, dead, done, end, later, message, next, report, stage, stranger,
    take, take_one, take_soon, texts,
};
use crate::testing::store::fixture::Fixture;

/// A turn goes on from message to message and ends behind the last.
pub async fn a_turn_goes_on_to_its_end<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring_all(store, "a", &["a1", "a2"]).await;
    let mut turn = store.take(1, 1, LONG).await.unwrap().pop().unwrap();
    let place = turn.messages[0].place;
    let first = Report::new(turn.hold, place, Ended::Done, Then::Read(1));
    turn.messages = next(report(store, first).await);
    assert_eq!(texts(&turn.messages), ["a2"]);
    assert_eq!(done(store, &turn).await, Onward::Ended);
    assert!(take(store, LONG).await.is_empty());
    assert_eq!(store.backlog().await.unwrap().lines, 0);
}

/// A message that comes while its line's last one is handled is not lost.
pub async fn a_message_that_comes_during_the_last_one_is_next<F: Fixture<Store: Queue>>(
    fixture: F,
) {
    let store = fixture.store();
    bring_all(store, "a", &["a1"]).await;
    let turn = take_one(store, LONG).await;
    bring_all(store, "a", &["a2"]).await;
    assert_eq!(texts(&next(done(store, &turn).await)), ["a2"]);
}

/// Messages come while the line ends, over and over: none stays behind.
pub async fn no_message_is_lost_while_its_line_ends<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    for round in 0..100 {
        bring(store, message("a", &format!("{round}-1"))).await;
        let turn = take_one(store, LONG).await;
        let next = message("a", &format!("{round}-2"));
        let (onward, _) = futures_util::future::join(done(store, &turn), bring(store, next)).await;
        let mut rest = match onward {
            Onward::Next(messages) => {
                let mut turn = turn;
                turn.messages = messages;
                turn
            }
            Onward::Ended => take_one(store, LONG).await,
            Onward::Lost => panic!("the turn was lost"),
        };
        rest.messages.truncate(1);
        assert_eq!(texts(&rest.messages), [format!("{round}-2")]);
        assert_eq!(done(store, &rest).await, Onward::Ended);
    }
}

/// A report that is sent again changes nothing.
// Field case B118.
pub async fn a_second_report_changes_nothing<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring_all(store, "a", &["a1", "a2", "a3"]).await;
    let turn = take_one(store, LONG).await;
    for _ in 0..2 {
        assert_eq!(texts(&next(done(store, &turn).await)), ["a2", "a3"]);
    }
}

/// A report under a token that was taken over changes nothing.
// Field case P101.
pub async fn a_stale_report_changes_nothing<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring_all(store, "a", &["a1", "a2"]).await;
    let stale = take_one(store, SHORT).await;
    let turn = take_soon(store, LONG).await;
    let ends = [
        Ended::Done,
        dead(1),
        later(Duration::ZERO, 7, Behind::Wait),
        later(Duration::ZERO, 7, Behind::Pass),
    ];
    for ended in ends {
        assert_eq!(end(store, &stale, ended).await, Onward::Lost);
    }
    let back = report(store, Report::give_back(stale.hold)).await;
    assert_eq!(back, Onward::Lost);
    assert!(take(store, LONG).await.is_empty());
    assert_eq!(stage(store, message("a", "a1")).await, Stage::Waiting);
    assert_eq!(texts(&next(done(store, &turn).await)), ["a2"]);
}

/// A report on a line that is not there is lost.
pub async fn a_report_without_a_turn_is_lost<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    let hold = stranger(message("a", "a1").line());
    assert_eq!(report(store, Report::give_back(hold)).await, Onward::Lost);
    bring_all(store, "a", &["a1"]).await;
    assert_eq!(report(store, Report::give_back(hold)).await, Onward::Lost);
}

/// Reports of one call are answered by themselves and in order.
pub async fn reports_are_answered_in_order<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring_all(store, "a", &["a1", "a2"]).await;
    bring_all(store, "b", &["b1"]).await;
    let turns = take(store, LONG).await;
    let mut reports = vec![Report::give_back(stranger(message("c", "c1").line()))];
    reports.extend(turns.iter().map(|turn| {
        let place = turn.messages[0].place;
        Report::new(turn.hold, place, Ended::Done, Then::Read(16))
    }));
    let answers = store.report(&reports).await.unwrap();
    assert_eq!(answers[0], Onward::Lost);
    for (turn, answer) in turns.iter().zip(&answers[1..]) {
        match (turn.messages.len(), answer) {
            (2, Onward::Next(messages)) => assert_eq!(texts(messages), ["a2"]),
            (1, Onward::Ended) => {}
            other => panic!("answers of other reports: {other:?}"),
        }
    }
}

/// A message that failed holds its line back, also against new messages, until its time.
pub async fn a_failed_message_holds_its_line<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring_all(store, "a", &["a1", "a2"]).await;
    let turn = take_one(store, LONG).await;
    let retry = later(SHORT * 4, 1, Behind::Wait);
    assert_eq!(end(store, &turn, retry).await, Onward::Ended);
    bring_all(store, "a", &["a3"]).await;
    let given = store.accept(&[message("a", "a4")], Some(LONG)).await;
    assert!(given.is_ok());
    assert!(take(store, LONG).await.is_empty());
    let again = take_soon(store, LONG).await;
    assert_eq!(texts(&again.messages), ["a1", "a2", "a3", "a4"]);
    assert_eq!(again.messages[0].attempt, 2);
    assert_eq!(again.messages[0].fault.as_deref(), Some("failed 1"));
    assert_eq!(again.messages[1].attempt, 1);
}

/// Attempts add up over failures and lapses.
pub async fn attempts_add_up<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring_all(store, "a", &["a1"]).await;
    for attempt in 1..4 {
        let turn = take_soon(store, LONG).await;
        assert_eq!(turn.messages[0].attempt, attempt);
        end(store, &turn, later(Duration::ZERO, attempt, Behind::Wait)).await;
    }
    assert_eq!(take_soon(store, SHORT).await.messages[0].attempt, 4);
    let turn = take_soon(store, LONG).await;
    assert_eq!(turn.messages[0].attempt, 5);
    end(store, &turn, later(Duration::ZERO, 5, Behind::Wait)).await;
    assert_eq!(take_soon(store, LONG).await.messages[0].attempt, 6);
}

/// Where others may pass, a failed message does not hold them: neither those that wait, nor new
/// ones.
pub async fn a_failed_message_may_be_passed<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring_all(store, "a", &["a1", "a2"]).await;
    let mut turn = take_one(store, LONG).await;
    let retry = later(LONG, 1, Behind::Pass);
    turn.messages = next(end(store, &turn, retry).await);
    assert_eq!(texts(&turn.messages), ["a2"]);
    assert_eq!(done(store, &turn).await, Onward::Ended);
    bring_all(store, "a", &["a3"]).await;
    let turn = take_one(store, LONG).await;
    assert_eq!(texts(&turn.messages), ["a3"]);
    assert_eq!(done(store, &turn).await, Onward::Ended);
    assert!(take(store, LONG).await.is_empty());
}

/// A message that was passed comes back in its time.
pub async fn a_passed_message_comes_back<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring_all(store, "a", &["a1"]).await;
    let turn = take_one(store, LONG).await;
    let retry = later(SHORT, 1, Behind::Pass);
    assert_eq!(end(store, &turn, retry).await, Onward::Ended);
    let turn = take_soon(store, LONG).await;
    assert_eq!(texts(&turn.messages), ["a1"]);
    assert_eq!(turn.messages[0].attempt, 2);
    assert_eq!(done(store, &turn).await, Onward::Ended);
}

/// A dead message lets the next one come, and is listed.
pub async fn a_dead_message_lets_the_next_one_come<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring_all(store, "a", &["a1", "a2"]).await;
    let turn = take_one(store, LONG).await;
    assert_eq!(texts(&next(end(store, &turn, dead(7)).await)), ["a2"]);
    let letters = store.dead(None, 10).await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].attempts, 7);
    assert_eq!(letters[0].fault, "died at 7");
    assert_eq!(&letters[0].raw[..], b"a1");
    assert_eq!(letters[0].received_at, turn.messages[0].received_at);
    assert!(letters[0].died_at >= letters[0].received_at);
}

/// A death that is reported twice is one.
pub async fn a_death_is_reported_once<F: Fixture<Store: Queue>>(fixture: F) {
    let store = fixture.store();
    bring_all(store, "a", &["a1", "a2"]).await;
    let turn = take_one(store, LONG).await;
    for _ in 0..2 {
        end(store, &turn, dead(1)).await;
    }
    assert_eq!(store.dead(None, 10).await.unwrap().len(), 1);
}
