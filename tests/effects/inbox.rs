//! The end of an inbox's message is in the transaction of its handler.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::response::IntoResponse;
use axum::routing::post;
use tokio::task::JoinHandle;
use tower::ServiceExt;
use tower_idempotency::channel::JsonPath;
use tower_idempotency::effects::{Effect, Outbox};
use tower_idempotency::inbox::{Front, Inbox, Letters};
use tower_idempotency::store::{BoxStore, Queue};
use tower_idempotency::verify::Unverified;
use tower_idempotency::{BoxError, Claimed};

use crate::side::{Runs, Side, on_both};

on_both! {
    a_message_is_done_with_what_its_handler_wrote
    an_attempt_that_fails_leaves_nothing
    a_message_whose_transaction_fails_is_tried_again
    an_inbox_and_its_outbox_keep_apart
}

type Hook = Front<Router, BoxStore, Unverified<JsonPath>, Body>;

/// An inbox whose handler writes, has an effect, and answers what it is told. The worker ends with
/// the test's runtime.
fn inbox(
    side: &Side,
    runs: &Runs<StatusCode>,
    breaks: Option<&'static str>,
) -> (Hook, JoinHandle<()>) {
    let (tables, told) = (side.tables.clone(), runs.clone());
    let handler = move |claimed: Claimed| async move {
        tables.write(&claimed, "hello").await.unwrap();
        claimed.enqueue("notify", "ann").unwrap();
        let status = told.next();
        if status.is_success()
            && told.count() == 1
            && let Some(sql) = breaks
        {
            // A success whose transaction cannot be committed.
            let breaking = tables.clone();
            breaking.swallow(&claimed, sql).await;
        }
        status.into_response()
    };
    let channel = JsonPath::new("hook", "$.id")
        .unwrap()
        .conversation("$.chat")
        .unwrap()
        .unverified();
    let inbox = Inbox::new(side.store.clone(), channel)
        .backoff(Duration::from_millis(1), Duration::from_millis(5))
        .look_every(Duration::from_millis(20));
    let handler = Router::new().route("/hook", post(handler));
    let (front, worker) = inbox.wrap(handler).unwrap();
    (front, tokio::spawn(worker.run()))
}

async fn deliver(front: &Hook, id: u32) {
    let body = format!(r#"{{"id":"{id}","chat":"a"}}"#);
    let request = Request::post("/hook").body(Body::from(body)).unwrap();
    let response = front.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
}

async fn drained(store: &BoxStore) {
    let letters = Letters::new(store.clone());
    for _ in 0..3_000 {
        let backlog = letters.backlog().await.unwrap();
        if backlog.waiting == 0 {
            assert_eq!(backlog.dead, 0);
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("something waits for ever");
}

async fn a_message_is_done_with_what_its_handler_wrote(side: Side) {
    let runs = Runs::new([StatusCode::OK]);
    let (front, _worker) = inbox(&side, &runs, None);
    for id in [1, 2, 1, 3, 2, 1] {
        deliver(&front, id).await;
    }
    drained(&side.store).await;
    assert_eq!((side.written().await, side.effects().await), ((3, 3), 3));
    assert_eq!(runs.count(), 3);
}

async fn an_attempt_that_fails_leaves_nothing(side: Side) {
    let fails = [
        StatusCode::BAD_GATEWAY,
        StatusCode::NOT_FOUND,
        StatusCode::OK,
    ];
    let runs = Runs::new(fails);
    let (front, _worker) = inbox(&side, &runs, None);
    deliver(&front, 1).await;
    drained(&side.store).await;
    assert_eq!((side.written().await, side.effects().await), ((1, 1), 1));
    assert_eq!(runs.count(), 3);
}

async fn a_message_whose_transaction_fails_is_tried_again(side: Side) {
    let runs = Runs::new([StatusCode::OK]);
    let (front, _worker) = inbox(&side, &runs, Some("ROLLBACK"));
    deliver(&front, 1).await;
    deliver(&front, 2).await;
    drained(&side.store).await;
    assert_eq!((side.written().await, side.effects().await), ((2, 2), 2));
    assert_eq!(runs.count(), 3);
}

/// Both are queues of one store: neither worker takes what is the other's.
async fn an_inbox_and_its_outbox_keep_apart(side: Side) {
    let runs = Runs::new([StatusCode::OK]);
    let (front, _worker) = inbox(&side, &runs, None);
    for id in 0..20 {
        deliver(&front, id).await;
    }
    drained(&side.store).await;
    assert_eq!(side.effects().await, 20);
    let tables = side.tables.clone();
    let outbox = Outbox::new(&side.store).unwrap();
    let effects = outbox.each(move |effect: Effect| async move {
        assert_eq!(effect.name(), "notify");
        tables.write(effect.claimed(), "notified").await?;
        Ok::<(), BoxError>(())
    });
    tokio::spawn(effects.unwrap().run());
    drained(&side.store.outbox().unwrap()).await;
    assert_eq!(side.written().await, (40, 40));
    assert_eq!(runs.count(), 20);
}
