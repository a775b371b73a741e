//! The hand that asks a store's inbox, in the shortest words.

use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::time::sleep;

use crate::key::{Conversation, Key};
use crate::record::Keep;
use crate::store::lease::{Standing, Token};
use crate::store::queue::arrival::{Accepted, Arrival, Line, Place, Stage};
use crate::store::queue::backlog::DeadLetter;
use crate::store::queue::contract::Queue;
use crate::store::queue::turn::{Behind, Ended, Onward, Report, Then, Turn, TurnHold, Waiting};

/// A lease or retention that does not end while a test runs.
pub(super) const LONG: Duration = Duration::from_mins(10);

/// A lease or retention whose end a test waits for.
pub(super) const SHORT: Duration = Duration::from_millis(50);

/// How long a test waits for what must come, before it fails.
const PATIENCE: Duration = Duration::from_secs(30);

const PAUSE: Duration = Duration::from_millis(10);

pub(super) fn conversation(id: &str) -> Conversation {
    Conversation::new("contract", "", id)
}

/// A message `id` of the conversation `of`, whose raw request is its id.
pub(super) fn message(of: &str, id: &str) -> Arrival {
    lone(id).conversation(conversation(of))
}

/// A message without a conversation.
pub(super) fn lone(id: &str) -> Arrival {
    kept(id, Keep::For(LONG))
}

/// A message without a conversation whose key is kept for a chosen time.
pub(super) fn kept(id: &str, keep: Keep) -> Arrival {
    let raw = Bytes::copy_from_slice(id.as_bytes());
    Arrival::new(Key::new("contract", "", &[id]), keep, raw)
}

/// What became of one arrival.
pub(super) async fn accept<Q: Queue>(store: &Q, arrival: Arrival) -> Accepted {
    only(store.accept(&[arrival], None).await.unwrap())
}

/// Accepts a message that must be new.
pub(super) async fn bring<Q: Queue>(store: &Q, arrival: Arrival) -> Place {
    match accept(store, arrival).await {
        Accepted::New { place, turn: None } => place,
        other => panic!("not new, or with a turn that nobody asked for: {other:?}"),
    }
}

/// Accepts messages of the conversation `of`, all of which must be new.
pub(super) async fn bring_all<Q: Queue>(store: &Q, of: &str, ids: &[&str]) {
    for id in ids {
        bring(store, message(of, id)).await;
    }
}

/// Accepts a message that must begin its line, and gives the turn.
pub(super) async fn begin<Q: Queue>(
    store: &Q,
    arrival: Arrival,
    lease: Duration,
) -> (TurnHold, Place) {
    let line = arrival.line();
    let accepted = only(store.accept(&[arrival], Some(lease)).await.unwrap());
    match accepted {
        Accepted::New {
            place,
            turn: Some(token),
        } => (TurnHold::new(line, token), place),
        other => panic!("not given: {other:?}"),
    }
}

/// Says how far a message has come, by its repeat.
pub(super) async fn stage<Q: Queue>(store: &Q, arrival: Arrival) -> Stage {
    match accept(store, arrival).await {
        Accepted::Repeat(stage) => stage,
        other => panic!("no repeat: {other:?}"),
    }
}

/// Takes every turn that is due.
pub(super) async fn take<Q: Queue>(store: &Q, lease: Duration) -> Vec<Turn> {
    store.take(100, 16, lease).await.unwrap()
}

/// Takes the one turn that is due.
pub(super) async fn take_one<Q: Queue>(store: &Q, lease: Duration) -> Turn {
    only(take(store, lease).await)
}

/// Takes the one turn that must become due.
pub(super) async fn take_soon<Q: Queue>(store: &Q, lease: Duration) -> Turn {
    until("a turn is due", async || take(store, lease).await.pop()).await
}

/// What the messages' raw requests say.
pub(super) fn texts(messages: &[Waiting]) -> Vec<String> {
    let text = |message: &Waiting| String::from_utf8_lossy(&message.raw).into_owned();
    messages.iter().map(text).collect()
}

pub(super) async fn report<Q: Queue>(store: &Q, report: Report) -> Onward {
    only(store.report(&[report]).await.unwrap())
}

/// Reports the turn's first message done, and reads on.
pub(super) async fn done<Q: Queue>(store: &Q, turn: &Turn) -> Onward {
    end(store, turn, Ended::Done).await
}

/// Reports how the turn's first message ended, and reads on.
pub(super) async fn end<Q: Queue>(store: &Q, turn: &Turn, ended: Ended) -> Onward {
    let place = turn.messages.first().unwrap().place;
    report(store, Report::new(turn.hold, place, ended, Then::Read(16))).await
}

/// What a turn that goes on is given next.
pub(super) fn next(onward: Onward) -> Vec<Waiting> {
    match onward {
        Onward::Next(messages) => messages,
        other => panic!("the turn does not go on: {other:?}"),
    }
}

pub(super) async fn give_back<Q: Queue>(store: &Q, hold: TurnHold) -> Onward {
    report(store, Report::give_back(hold)).await
}

pub(super) fn later(after: Duration, attempt: u32, behind: Behind) -> Ended {
    Ended::Later {
        after,
        attempt,
        fault: format!("failed {attempt}"),
        behind,
    }
}

pub(super) fn dead(attempt: u32) -> Ended {
    Ended::Dead {
        attempt,
        fault: format!("died at {attempt}"),
    }
}

/// Accepts a message and lets it die.
pub(super) async fn kill<Q: Queue>(store: &Q, arrival: Arrival) -> DeadLetter {
    bring(store, arrival).await;
    let turn = take_one(store, LONG).await;
    end(store, &turn, dead(1)).await;
    store.dead(None, 100).await.unwrap().pop().unwrap()
}

pub(super) async fn renew<Q: Queue>(store: &Q, hold: TurnHold, lease: Duration) -> Standing {
    only(store.renew_turns(&[hold], lease).await.unwrap())
}

/// A hold that nobody has.
pub(super) fn stranger(line: Line) -> TurnHold {
    TurnHold::new(line, Token::new(i64::MAX))
}

/// Sweeps until the key is new again.
pub(super) async fn swept<Q: Queue>(store: &Q, arrival: &Arrival) {
    until("the key goes", async || {
        store.sweep(100).await.unwrap();
        let accepted = accept(store, arrival.clone()).await;
        matches!(accepted, Accepted::New { .. }).then_some(())
    })
    .await;
}

/// Asks until there is an answer.
pub(super) async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(began.elapsed() < PATIENCE, "waited in vain until {what}");
        sleep(PAUSE).await;
    }
}

/// The one answer to a question about one thing.
pub(super) fn only<T: std::fmt::Debug>(answers: Vec<T>) -> T {
    match <[T; 1]>::try_from(answers) {
        Ok([answer]) => answer,
        Err(answers) => panic!("not one answer: {answers:?}"),
    }
}
