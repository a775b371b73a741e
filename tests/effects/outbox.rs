//! Effects happen once their run is committed: in order, with retries, each under a key of its own.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Extension;
use axum::http::{Request, StatusCode, Uri};
use axum::routing::post;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tower::ServiceExt;
use tower_idempotency::channel::JsonPath;
use tower_idempotency::effects::{Effect, Outbox};
use tower_idempotency::inbox::{Failure, Received};
use tower_idempotency::store::{
    Accepted, Arrival, BoxStore, Ended, MemoryStore, Queue, Report, Store, Then,
};
use tower_idempotency::{BoxError, Claimed, Conversation, IdempotencyLayer, Keep, Key};

use crate::side::{Side, on_both, send};
use crate::turns::begun;

on_both! {
    effects_of_a_conversation_happen_in_order
    an_effect_that_fails_is_tried_again_under_the_same_key
    an_effect_may_be_told_never_and_is_redriven
    a_service_can_handle_effects
    an_effect_has_effects_of_its_own
    effects_of_a_forgotten_conversation_go
    done_effects_go_when_their_time_has_ended
}

/// An application with one route, whose messages stand in conversations and have two effects each.
fn app(side: &Side) -> Router {
    let handler = |claimed: Claimed, text: String| async move {
        claimed.enqueue("feed", text.clone()).unwrap();
        claimed.enqueue("notify", text).unwrap();
        StatusCode::CREATED
    };
    let channel = JsonPath::new("hook", "$.id")
        .unwrap()
        .conversation("$.chat")
        .unwrap()
        .unverified();
    let layer = IdempotencyLayer::new(side.store.clone(), channel);
    Router::new().route("/", post(handler)).layer(layer)
}

async fn deliver(app: &Router, chat: &str, id: u32) {
    let body = format!(r#"{{"id":"{chat}-{id}","chat":"{chat}"}}"#);
    let request = Request::post("/").body(Body::from(body)).unwrap();
    let response = app.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::CREATED);
}

fn outbox(side: &Side) -> Outbox<BoxStore> {
    Outbox::new(&side.store)
        .unwrap()
        .backoff(Duration::from_millis(1), Duration::from_millis(5))
        .look_every(Duration::from_millis(20))
}

/// A worker that tells what it was given, and fails as often as it is told to.
fn tells(side: &Side, mut fails: Vec<Failure>) -> UnboundedReceiver<Effect> {
    let (tell, told) = unbounded_channel();
    fails.reverse();
    let fails = Arc::new(Mutex::new(fails));
    let worker = outbox(side).each(move |effect: Effect| {
        tell.send(effect).unwrap();
        let failure = fails.lock().unwrap().pop();
        async move { failure.map_or(Ok(()), |failure| Err(BoxError::from(failure))) }
    });
    tokio::spawn(worker.unwrap().run());
    told
}

async fn next(told: &mut UnboundedReceiver<Effect>) -> Effect {
    let next = tokio::time::timeout(Duration::from_mins(1), told.recv());
    next.await.unwrap().unwrap()
}

async fn effects_of_a_conversation_happen_in_order(side: Side) {
    let app = app(&side);
    for id in 0..8 {
        deliver(&app, "a", id).await;
        deliver(&app, "b", id).await;
        deliver(&app, "a", id).await;
    }
    let mut told = tells(&side, Vec::new());
    let mut seen = Vec::new();
    for _ in 0..32 {
        let effect = next(&mut told).await;
        let payload = String::from_utf8(effect.payload().to_vec()).unwrap();
        let chat = effect.conversation().unwrap().id().to_owned();
        assert!(payload.contains(&format!(r#""chat":"{chat}""#)));
        seen.push((chat, payload, effect.name().to_owned()));
    }
    for chat in ["a", "b"] {
        let of_chat = seen.iter().filter(|(of, ..)| of == chat);
        let of_chat: Vec<_> = of_chat.map(|(_, payload, name)| (payload, name)).collect();
        let expected: Vec<_> = (0..8)
            .flat_map(|id| ["feed", "notify"].map(|name| (id, name)))
            .map(|(id, name)| {
                (
                    format!(r#"{{"id":"{chat}-{id}","chat":"{chat}"}}"#),
                    name.to_owned(),
                )
            })
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(payload, name)| (payload, name))
            .collect();
        assert_eq!(of_chat, expected);
    }
}

async fn an_effect_that_fails_is_tried_again_under_the_same_key(side: Side) {
    let mut told = tells(
        &side,
        vec![
            Failure::Later(Duration::ZERO),
            Failure::Later(Duration::ZERO),
        ],
    );
    deliver(&app(&side), "a", 1).await;
    let mut keys = Vec::new();
    for attempt in 1..=3 {
        let effect = next(&mut told).await;
        assert_eq!((effect.name(), effect.attempt()), ("feed", attempt));
        keys.push(effect.step_key("send"));
    }
    let other = next(&mut told).await;
    assert_eq!((other.name(), other.attempt()), ("notify", 1));
    assert_ne!(other.step_key("send"), keys[0]);
    keys.dedup();
    assert_eq!(keys.len(), 1);
}

async fn an_effect_may_be_told_never_and_is_redriven(side: Side) {
    let letters = outbox(&side).letters();
    let mut told = tells(&side, vec![Failure::Never]);
    deliver(&app(&side), "a", 1).await;
    assert_eq!(next(&mut told).await.name(), "feed");
    assert_eq!(next(&mut told).await.name(), "notify");
    let dead = letters.dead(None, 10).await.unwrap();
    let [dead] = dead.as_slice() else {
        panic!("{dead:?}");
    };
    assert_eq!(dead.request.as_ref().unwrap().head.uri, "/feed");
    assert!(letters.redrive(dead.death.unwrap()).await.unwrap());
    assert_eq!(next(&mut told).await.name(), "feed");
}

async fn a_service_can_handle_effects(side: Side) {
    let (tell, mut told) = unbounded_channel();
    let handler = move |uri: Uri, Extension(received): Extension<Received>, body: String| async move {
        tell.send((uri.path().to_owned(), received.delivery().clone(), body))
            .unwrap();
        StatusCode::NO_CONTENT
    };
    let router = Router::new().fallback(handler);
    tokio::spawn(outbox(&side).wrap(router).unwrap().run());
    deliver(&app(&side), "a", 1).await;
    for name in ["feed", "notify"] {
        let (path, delivery, body) = told.recv().await.unwrap();
        assert_eq!(path, format!("/{name}"));
        assert_eq!(body, r#"{"id":"a-1","chat":"a"}"#);
        assert_eq!(
            (delivery.key().channel(), delivery.key().scope()),
            ("effects", name)
        );
        assert_eq!(delivery.in_conversation().unwrap().channel(), "hook");
    }
}

async fn an_effect_has_effects_of_its_own(side: Side) {
    let (tell, mut told) = unbounded_channel();
    let worker = outbox(&side).each(move |effect: Effect| async move {
        tell.send(effect.name().to_owned()).unwrap();
        if effect.name() == "notify" {
            effect.claimed().enqueue("push", "ann")?;
        }
        Ok::<(), BoxError>(())
    });
    tokio::spawn(worker.unwrap().run());
    deliver(&app(&side), "a", 1).await;
    for name in ["feed", "notify", "push"] {
        assert_eq!(told.recv().await.unwrap(), name);
    }
}

async fn effects_of_a_forgotten_conversation_go(side: Side) {
    let app = app(&side);
    deliver(&app, "a", 1).await;
    deliver(&app, "b", 1).await;
    assert_eq!(side.effects().await, 4);
    side.store
        .forget(&Conversation::new("hook", "", "a"))
        .await
        .unwrap();
    assert_eq!(side.effects().await, 2);
    let waiting = side.store.outbox().unwrap().waiting(10).await.unwrap();
    assert!(
        waiting
            .iter()
            .all(|waiting| !waiting.raw.windows(3).any(|part| part == b"a-1"))
    );
}

async fn done_effects_go_when_their_time_has_ended(side: Side) {
    let outbox = side.store.outbox().unwrap();
    let keep = Keep::For(Duration::from_millis(1));
    let arrival = Arrival::new(Key::new("effects", "notify", &["1"]), keep, "raw".into())
        .conversation(Conversation::new("hook", "", "a"));
    let line = arrival.line();
    let accepted = outbox.accept(std::slice::from_ref(&arrival), Some(Duration::from_mins(1)));
    let (place, turn) = begun(line, &accepted.await.unwrap());
    let report = Report::new(turn, place, Ended::Done, Then::GiveBack);
    outbox.report(&[report]).await.unwrap();
    let mut swept = 0;
    for _ in 0..500 {
        swept += outbox.sweep(10).await.unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
        if swept > 0 {
            break;
        }
    }
    assert_eq!(swept, 1);
    let again = outbox.accept(&[arrival], None).await.unwrap();
    assert!(matches!(again[..], [Accepted::New { .. }]), "{again:?}");
}

#[tokio::test]
async fn a_store_without_an_outbox_is_refused() {
    assert!(
        Outbox::new(&MemoryStore::new())
            .unwrap_err()
            .is_misconfigured()
    );
}

/// What this process enqueues is handled at once, and not at the next look.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_is_woken() {
    for side in [Side::postgres().await, Side::sqlite().await] {
        let (tell, mut told) = unbounded_channel();
        let worker = Outbox::new(&side.store)
            .unwrap()
            .look_every(Duration::from_hours(1))
            .each(move |effect: Effect| async move {
                tell.send(effect.name().to_owned()).unwrap();
                Ok::<(), BoxError>(())
            });
        tokio::spawn(worker.unwrap().run());
        let handler = |claimed: Claimed| async move {
            claimed.enqueue("notify", "ann").unwrap();
            StatusCode::CREATED
        };
        let app = Router::new()
            .route("/messages", post(handler))
            .layer(side.layer());
        for key in ["1", "2"] {
            send(&app, key).await;
            let woken = tokio::time::timeout(Duration::from_mins(1), told.recv()).await;
            assert_eq!(woken.unwrap().unwrap(), "notify");
        }
    }
}
