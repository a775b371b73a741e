//! What the application says about a parked message.

use std::time::Duration;

use bytes::Bytes;
use http::Response;
use tower::ServiceExt;
use tower_idempotency::store::{BoxStore, End, MemoryStore, Resolved, settle_unknown};
use tower_idempotency::{IdempotencyLayer, Key, Known};

use crate::app::{App, channel, is_replayed, is_unknown, parking, parking_in, send, text};

fn key() -> Key {
    Key::new("web", "alice", &["k"])
}

#[tokio::test(start_paused = true)]
async fn what_was_done_replays_the_channels_ack() {
    let app = App::new(parking());
    app.send("k", "504").await;
    let settled = app.layer.settle_unknown(&key(), Known::Done).await;
    assert_eq!(settled.unwrap(), Resolved::Applied);
    let repeat = app.send("k", "done").await;
    assert!(is_replayed(&repeat));
    assert_eq!(repeat.status(), 200);
    assert_eq!(app.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_done_replays_the_answer_that_is_given() {
    let app = App::new(parking());
    app.send("k", "504").await;
    let answer = Response::builder().status(201).header("x-order", "7");
    let known = Known::DoneWith(answer.body(Bytes::from("order 7")).unwrap());
    let settled = app.layer.settle_unknown(&key(), known).await;
    assert_eq!(settled.unwrap(), Resolved::Applied);
    let repeat = app.send("k", "done").await;
    assert!(is_replayed(&repeat));
    assert_eq!(repeat.status(), 201);
    assert_eq!(repeat.headers()["x-order"], "7");
    assert_eq!(text(repeat).await, "order 7");
    let mut other = send("k", "done");
    *other.body_mut() = "another message".into();
    let refused = app.router.clone().oneshot(other).await.unwrap();
    assert_eq!(refused.status(), 422);
}

#[tokio::test(start_paused = true)]
async fn what_was_not_done_runs() {
    let app = App::new(parking());
    app.send("k", "504").await;
    let settled = app.layer.settle_unknown(&key(), Known::NotDone).await;
    assert_eq!(settled.unwrap(), Resolved::Applied);
    let next = app.send("k", "done").await;
    assert!(!is_replayed(&next));
    assert_eq!((next.status().as_u16(), app.runs()), (201, 2));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_alive_is_not_settled() {
    let app = App::new(parking());
    let settle = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        app.layer.settle_unknown(&key(), Known::NotDone).await
    };
    let (_, settled) = tokio::join!(app.send("k", "hang"), settle);
    assert!(matches!(settled.unwrap(), Resolved::Running { remaining } if !remaining.is_zero()));
    is_unknown(app.send("k", "done").await).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_settled_is_settled_once() {
    let app = App::new(parking());
    let key = key();
    let settle = |known| app.layer.settle_unknown(&key, known);
    assert_eq!(settle(Known::Done).await.unwrap(), Resolved::Absent);
    app.send("k", "504").await;
    assert_eq!(settle(Known::Done).await.unwrap(), Resolved::Applied);
    assert_eq!(settle(Known::NotDone).await.unwrap(), Resolved::Done);
    assert!(is_replayed(&app.send("k", "done").await));
}

#[tokio::test(start_paused = true)]
async fn a_store_and_a_key_are_enough() {
    let store = BoxStore::new(MemoryStore::new());
    let app = App::new(parking_in(store.clone()));
    app.send("k", "504").await;
    let key = Key::restored("web", "alice", "k");
    let settled = settle_unknown(&store, &key, End::Release).await;
    assert_eq!(settled.unwrap(), Resolved::Applied);
    assert_eq!(app.send("k", "done").await.status(), 201);
}

#[tokio::test]
async fn a_key_of_a_channel_that_the_layer_has_not_is_an_error() {
    let layer = IdempotencyLayer::new(MemoryStore::new(), channel().named("chat"));
    let error = layer.settle_unknown(&key(), Known::Done).await.unwrap_err();
    assert!(error.is_misconfigured());
}
