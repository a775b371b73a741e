//! What the front does: it stores, acknowledges, passes, refuses.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use tokio::time::sleep;
use tower::Service;

use crate::world::{World, batch};

/// Row 43: the answer goes out before the handler is done, and does not wait for it.
#[tokio::test(start_paused = true)]
async fn a_message_is_acknowledged_before_it_is_handled() {
    let world = World::new();
    let (status, body) = world.post(batch(&[("a", "slow-1")])).await;
    assert_eq!((status, &*body), (StatusCode::OK, ""));
    assert!(world.log.runs().iter().all(|run| run.ended.is_none()));
    assert_eq!(world.log.ended(1).await[0].id, "slow-1");
}

/// Row 44: a repeat is acknowledged and dropped, however far the first has come, and counted.
///
/// Field cases P91, P102.
#[tokio::test(start_paused = true)]
async fn a_repeat_is_acknowledged_and_dropped() {
    let world = World::with(|inbox| inbox.attempts(1));
    world.deliver("a", "slow-1").await;
    world.deliver("a", "slow-1").await;
    world.log.ended(1).await;
    world.drained().await;
    world.deliver("a", "slow-1").await;
    world.deliver("a", "fail-2").await;
    world.drained().await;
    world.deliver("a", "fail-2").await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(world.log.ids(), ["slow-1", "fail-2"]);
    let counts = world.front.counts();
    assert_eq!(
        (
            counts.accepted,
            counts.repeats_of_waiting,
            counts.repeats_of_done,
            counts.repeats_of_dead
        ),
        (2, 1, 1, 1)
    );
    assert_eq!((counts.handled, counts.died), (1, 1));
}

/// A repeat's acknowledgement says that it is one.
#[tokio::test(start_paused = true)]
async fn an_acknowledged_repeat_is_marked() {
    let mut world = World::new();
    let post = || {
        Request::post("/hook")
            .body(Full::from(batch(&[("a", "ok-1")]).to_string()))
            .unwrap()
    };
    let first = world.front.call(post()).await.unwrap();
    assert!(!first.headers().contains_key("idempotency-replayed"));
    let repeat = world.front.call(post()).await.unwrap();
    assert_eq!(repeat.headers()["idempotency-replayed"], "true");
}

/// The handler gets method, path, query, repeated header lines and body bytes as they came.
///
/// Field case B121.
#[tokio::test(start_paused = true)]
async fn the_request_comes_as_it_was() {
    let world = World::new();
    let body = r#"{ "messages": [ {"id":"ok-1",  "chat":"a","text":"é"} ] }"#;
    world.post(body).await;
    let run = world.log.ended(1).await.remove(0);
    assert_eq!(run.request, format!(r#"POST /hook?x=1 ["1", "2"] {body}"#));
    assert_eq!(run.attempt, 1);
    assert!(run.first_received_at.elapsed().unwrap() < Duration::from_mins(1));
}

/// A batch is split: each part keeps the envelope and its own message alone; a message that the
/// request names twice is one.
#[tokio::test(start_paused = true)]
async fn a_batch_is_split() {
    let world = World::new();
    let (status, _) = world
        .post(batch(&[
            ("a", "ok-1"),
            ("b", "ok-2"),
            ("a", "ok-1"),
            ("a", "ok-3"),
        ]))
        .await;
    assert_eq!(status, StatusCode::OK);
    world.log.ended(3).await;
    world.drained().await;
    let mut bodies: Vec<String> = world
        .log
        .runs()
        .into_iter()
        .map(|run| run.request)
        .collect();
    bodies.sort();
    let alone = |chat, id| {
        let body = batch(&[(chat, id)]).to_string();
        format!(r#"POST /hook?x=1 ["1", "2"] {body}"#)
    };
    let twice = batch(&[("a", "ok-1"), ("a", "ok-1")]).to_string();
    let expected = [
        format!(r#"POST /hook?x=1 ["1", "2"] {twice}"#),
        alone("a", "ok-3"),
        alone("b", "ok-2"),
    ];
    assert_eq!(bodies, expected);
}

/// Row 1: what is no message reaches the handler itself.
#[tokio::test(start_paused = true)]
async fn what_is_no_message_passes() {
    let world = World::new();
    let request = Request::builder()
        .method(Method::GET)
        .uri("/hook?hub.challenge=1");
    let answer = world.send(request.body(Full::default()).unwrap()).await;
    assert_eq!(answer, (StatusCode::OK, "passed".to_owned()));
    assert_eq!(world.front.counts().accepted, 0);
}

/// Bad input is refused; nothing is stored by it.
#[tokio::test(start_paused = true)]
async fn bad_input_is_refused_and_stores_nothing() {
    let world = World::with(|inbox| inbox.max_request(100));
    let long = "x".repeat(200);
    for (body, status) in [
        ("{\"messages\": [", 400),
        ("{\"messages\": []}", 400),
        (r#"{"messages": [{"id": null}]}"#, 400),
        (long.as_str(), 413),
    ] {
        assert_eq!(world.post(body).await.0.as_u16(), status, "{body}");
    }
    assert_eq!(world.letters().backlog().await.unwrap().waiting, 0);
    assert_eq!(world.front.counts().refused, 4);
}

/// A store that cannot keep the message is no reason to say that it was received.
///
/// Field case B116.
#[tokio::test(start_paused = true)]
async fn what_is_not_stored_is_not_acknowledged() {
    let store = tower_idempotency::store::MemoryStore::bounded(1, 1 << 20);
    let world = World::on(store, crate::world::Log::default(), |inbox| inbox);
    world.deliver("a", "ok-1").await;
    let (status, body) = world.post(batch(&[("a", "ok-2")])).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{body}");
    world.deliver("a", "ok-1").await;
    assert_eq!(world.front.counts().store_failures, 1);
}

/// A sender that hangs up at any point after its message was sent to the store does not keep the
/// message from being handled; one that hangs up before leaves nothing.
#[tokio::test(start_paused = true)]
async fn a_sender_that_hangs_up_harms_nothing() {
    for polls in 0..6 {
        let mut world = World::new();
        let request = Request::post("/hook")
            .body(Full::<Bytes>::from(batch(&[("a", "ok-1")]).to_string()))
            .unwrap();
        let mut answer = Box::pin(world.front.call(request));
        let mut left = polls;
        while left > 0 && futures_util::poll!(&mut answer).is_pending() {
            left -= 1;
        }
        drop(answer);
        world.deliver("a", "ok-1").await;
        world.log.ended(1).await;
        world.drained().await;
        assert_eq!(world.log.ids(), ["ok-1"], "{polls}");
    }
}

/// Without a worker messages wait; whoever works later handles them.
///
/// Field case B115.
#[tokio::test(start_paused = true)]
async fn messages_wait_for_a_worker() {
    let mut first = World::new();
    first.stop().await;
    first.deliver("a", "ok-1").await;
    first.deliver("a", "ok-2").await;
    assert_eq!(first.letters().backlog().await.unwrap().waiting, 2);
    let second = World::on(first.store.clone(), first.log.clone(), |inbox| inbox);
    second.log.ended(2).await;
    assert_eq!(second.log.ids(), ["ok-1", "ok-2"]);
}
