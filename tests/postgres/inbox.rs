//! The inbox's races, driven by hand: what one session has not committed yet is waited for or
//! passed by, and no message is lost, handled by two, or handled out of its turn.

use std::time::Duration;

use bytes::Bytes;
use tokio::task::{JoinHandle, JoinSet};
use tokio_postgres::Client;
use tower_idempotency::store::{
    Accepted, Arrival, Ended, Line, Onward, PostgresStore, Queue, Report, Stage, Then, Turn,
};
use tower_idempotency::{Conversation, Keep, Key};

use crate::database::{self, Schema};
use crate::fixture::{fresh, open, options};
use crate::hand::{LONG, SHORT, until};

pub(crate) fn message(of: &str, id: &str) -> Arrival {
    let key = Key::new("postgres", "", &[id]);
    let raw = Bytes::copy_from_slice(id.as_bytes());
    Arrival::new(key, Keep::For(LONG), raw).conversation(Conversation::new("postgres", "", of))
}

pub(crate) async fn accept(store: &PostgresStore, arrivals: &[Arrival]) -> Vec<Accepted> {
    store.accept(arrivals, None).await.unwrap()
}

pub(crate) async fn take(store: &PostgresStore) -> Vec<Turn> {
    store.take(100, 100, LONG).await.unwrap()
}

fn texts(turn: &Turn) -> Vec<&[u8]> {
    turn.messages
        .iter()
        .map(|message| &message.raw[..])
        .collect()
}

pub(crate) fn done(turn: &Turn) -> Report {
    Report::new(
        turn.hold,
        turn.messages[0].place,
        Ended::Done,
        Then::Read(16),
    )
}

/// A session of the test's own, in a transaction.
async fn session() -> Client {
    let client = database::client(&database::url()).await;
    client.batch_execute("BEGIN").await.unwrap();
    client
}

fn uuid(bytes: &[u8; 16]) -> String {
    format!("'{:032x}'::uuid", u128::from_be_bytes(*bytes))
}

/// What a session says to accept a message under this key.
fn accepting(schema: &Schema, key: u8, line: Line) -> String {
    format!(
        "SELECT * FROM {}_accept(ARRAY[{}], ARRAY[{}], ARRAY[600000], ARRAY[false], \
         ARRAY[NULL::bigint], ARRAY['hand'], ARRAY[''], ARRAY['{key}'], ARRAY['c'], \
         ARRAY['by hand'::bytea])",
        schema.table(),
        uuid(&[key; 16]),
        uuid(line.as_bytes()),
    )
}

/// Begins a call of the store that must wait for a lock, and returns once it does.
async fn blocked<T: Send + 'static>(
    schema: &Schema,
    function: &str,
    call: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    #[expect(clippy::disallowed_methods, reason = "the test awaits it")]
    let call = tokio::spawn(call);
    until("the store waits", async || {
        let waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
            AND query LIKE '%' || $1 || '%' || $2 || '%'";
        let client = database::client(&database::url()).await;
        let table = schema.table();
        let schema = table.split('.').next().unwrap();
        let rows = client.query(waiting, &[&schema, &function]).await.unwrap();
        (!rows.is_empty()).then_some(())
    })
    .await;
    call
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_ends_waits_for_a_message_that_comes() {
    let (store, schema) = fresh().await;
    accept(&store, &[message("a", "a1")]).await;
    let turn = take(&store).await.pop().unwrap();
    let coming = session().await;
    let line = turn.hold.line;
    coming
        .batch_execute(&accepting(&schema, 2, line))
        .await
        .unwrap();
    let ending = {
        let store = store.clone();
        async move { store.report(&[done(&turn)]).await }
    };
    let ending = blocked(&schema, "_report", ending).await;
    coming.batch_execute("COMMIT").await.unwrap();
    match &ending.await.unwrap().unwrap()[..] {
        [Onward::Next(messages)] => assert_eq!(&messages[0].raw[..], b"by hand"),
        other => panic!("the message was overlooked: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_comes_while_its_line_ends_begins_it_again() {
    let (store, schema) = fresh().await;
    accept(&store, &[message("a", "a1")]).await;
    let turn = take(&store).await.pop().unwrap();
    let ending = session().await;
    let report = format!(
        "SELECT * FROM {}_report(ARRAY[{}], ARRAY[{}::bigint], NULL, ARRAY[{}::bigint], \
         ARRAY['done'], NULL, NULL, NULL, NULL, ARRAY[16::bigint], 1000)",
        schema.table(),
        uuid(turn.hold.line.as_bytes()),
        turn.hold.token.number(),
        turn.messages[0].place.number(),
    );
    ending.batch_execute(&report).await.unwrap();
    let coming = {
        let store = store.clone();
        async move { store.accept(&[message("a", "a2")], Some(LONG)).await }
    };
    let coming = blocked(&schema, "_accept", coming).await;
    ending.batch_execute("COMMIT").await.unwrap();
    let accepted = coming.await.unwrap().unwrap();
    assert!(
        matches!(accepted[..], [Accepted::New { turn: Some(_), .. }]),
        "{accepted:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_waits_for_who_takes_the_turn_over_and_is_lost() {
    let (store, schema) = fresh().await;
    accept(&store, &[message("a", "a1")]).await;
    let lease = Duration::from_millis(1);
    let stale = store.take(1, 1, lease).await.unwrap().pop().unwrap();
    let taking = session().await;
    let take_over = format!("SELECT * FROM {}_turn(1, 1, 600000, 1000)", schema.table());
    until("the turn lapses", async || {
        let taken = taking.query(&take_over, &[]).await.unwrap();
        (taken.len() == 1).then_some(())
    })
    .await;
    let late = {
        let store = store.clone();
        async move { store.report(&[done(&stale)]).await }
    };
    let late = blocked(&schema, "_report", late).await;
    taking.batch_execute("COMMIT").await.unwrap();
    assert_eq!(late.await.unwrap().unwrap(), [Onward::Lost]);
    assert_eq!(store.waiting(10).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_to_which_a_message_comes_is_passed_by_and_taken_whole() {
    let (store, schema) = fresh().await;
    accept(&store, &[message("a", "a1"), message("b", "b1")]).await;
    let coming = session().await;
    let line = message("a", "").line();
    coming
        .batch_execute(&accepting(&schema, 2, line))
        .await
        .unwrap();
    let turns = take(&store).await;
    assert_eq!(turns.iter().map(texts).collect::<Vec<_>>(), [[b"b1"]]);
    coming.batch_execute("COMMIT").await.unwrap();
    let turn = take(&store).await.pop().unwrap();
    assert_eq!(texts(&turn), [&b"a1"[..], b"by hand"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_being_accepted_elsewhere_is_a_repeat_and_leaves_no_line() {
    let (store, schema) = fresh().await;
    let other = open(&database::url(), &options(&schema)).await;
    let twice = message("a", "twice");
    let elsewhere = session().await;
    // The other session has not heard of the conversation.
    let mut insert = accepting(&schema, 9, Line::of_key(&twice.key));
    let key = *Line::of_key(&twice.key).as_bytes();
    insert = insert.replace(&uuid(&[9; 16]), &uuid(&key));
    elsewhere.batch_execute(&insert).await.unwrap();
    let arrivals = [twice, message("b", "b1"), message("b", "b2")];
    let call = async move { other.accept(&arrivals, Some(LONG)).await };
    let call = blocked(&schema, "_accept", call).await;
    elsewhere.batch_execute("COMMIT").await.unwrap();
    let accepted = call.await.unwrap().unwrap();
    assert_eq!(accepted[0], Accepted::Repeat(Stage::Waiting));
    assert!(
        matches!(accepted[1], Accepted::New { turn: Some(_), .. }),
        "{accepted:?}"
    );
    assert!(
        matches!(accepted[2], Accepted::New { turn: None, .. }),
        "{accepted:?}"
    );
    let turns = take(&store).await;
    assert_eq!(turns.iter().map(texts).collect::<Vec<_>>(), [[b"by hand"]]);
    sound(&schema).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_whose_retention_has_ended_is_new_before_it_is_swept() {
    let (store, _schema) = fresh().await;
    let mut brief = message("a", "a1");
    brief.keep = Keep::For(SHORT);
    accept(&store, &[brief.clone()]).await;
    let turn = take(&store).await.pop().unwrap();
    store.report(&[done(&turn)]).await.unwrap();
    until("the key is new", async || {
        let accepted = accept(&store, &[brief.clone(), message("a", "a2")]).await;
        matches!(accepted[0], Accepted::New { .. }).then_some(())
    })
    .await;
}

/// Each line's row has messages or a turn, and each message has a line and a key.
async fn sound(schema: &Schema) {
    let client = database::client(&database::url()).await;
    let table = schema.table();
    for wrong in [
        "SELECT FROM {t}_line l WHERE token IS NULL AND NOT EXISTS \
         (SELECT FROM {t}_message m WHERE m.line = l.line)",
        "SELECT FROM {t}_message m WHERE NOT EXISTS \
         (SELECT FROM {t}_line l WHERE m.line = l.line)",
        "SELECT FROM {t}_message m WHERE NOT EXISTS \
         (SELECT FROM {t}_seen s WHERE s.key = m.key AND s.place = m.place)",
    ] {
        let rows = client
            .query(&wrong.replace("{t}", &table), &[])
            .await
            .unwrap();
        assert_eq!(rows.len(), 0, "{wrong}");
    }
}

/// The same messages by two processes at once, in orders of their own.
#[tokio::test(flavor = "multi_thread")]
async fn copies_at_two_processes_in_opposite_order_are_kept_once() {
    let (store, schema) = fresh().await;
    let stores = [
        store.clone(),
        open(&database::url(), &options(&schema)).await,
    ];
    let mut calls = JoinSet::new();
    for number in 0..100 {
        let store = stores[number % 2].clone();
        let first = number / 4 * 10;
        let mut arrivals: Vec<Arrival> = (first..first + 20)
            .map(|n| message(&format!("c{}", n % 7), &n.to_string()))
            .collect();
        if number % 2 == 0 {
            arrivals.reverse();
        }
        let lease = (number % 3 == 0).then_some(LONG);
        calls.spawn(async move { store.accept(&arrivals, lease).await.unwrap() });
    }
    let answers: Vec<Accepted> = calls.join_all().await.into_iter().flatten().collect();
    let new = answers
        .iter()
        .filter(|answer| matches!(answer, Accepted::New { .. }));
    assert_eq!(new.count(), 260);
    let given = |answer: &&Accepted| matches!(answer, Accepted::New { turn: Some(_), .. });
    let given = answers.iter().filter(given).count();
    assert_eq!(given + take(&store).await.len(), 7);
    assert_eq!(store.backlog().await.unwrap().waiting, 260);
    sound(&schema).await;
}
