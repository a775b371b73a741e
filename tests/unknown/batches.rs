//! Parked messages of a webhook's requests, beside others.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{Request, StatusCode};
use axum::response::Response;
use axum::routing::post;
use tower::ServiceExt;
use tower_idempotency::channel::{JsonPath, Parking};
use tower_idempotency::store::MemoryStore;
use tower_idempotency::verify::Unverified;
use tower_idempotency::{Claimed, Disposition, IdempotencyLayer, Key, Known, OnUnknown};

use crate::app::is_unknown;

type Layer = IdempotencyLayer<MemoryStore, Parking<Unverified<JsonPath>>>;

/// Notes the ids that it is given. Of those, it says that `done…` are done, that of `lost…` it does
/// not know; a `panic…` makes it panic.
struct Hook {
    layer: Layer,
    router: Router,
    seen: Seen,
}

type Seen = Arc<Mutex<Vec<String>>>;

impl Hook {
    fn new() -> Self {
        Self::of(|layer| layer)
    }

    fn of(options: impl FnOnce(Layer) -> Layer) -> Self {
        let channel = JsonPath::new("hook", "$[*].id").unwrap().unverified();
        let channel = Parking::new(channel, Duration::from_hours(24));
        let layer = options(IdempotencyLayer::new(MemoryStore::new(), channel));
        let seen = Seen::default();
        let router = Router::new()
            .route("/", post(handle))
            .layer(layer.clone())
            .with_state(Arc::clone(&seen));
        Self {
            layer,
            router,
            seen,
        }
    }

    async fn post(&self, ids: &[&str]) -> Response {
        self.router.clone().oneshot(request(ids)).await.unwrap()
    }

    /// What the handler was given since the last time.
    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }

    /// Posts a message on which the handler panics.
    async fn panics(&self, ids: &[&str]) {
        let panicking = tokio::spawn(self.router.clone().oneshot(request(ids)));
        assert!(panicking.await.unwrap_err().is_panic());
        self.seen();
    }
}

fn request(ids: &[&str]) -> Request<Body> {
    let events = ids.iter().map(|id| serde_json::json!({ "id": id }));
    let body = events.collect::<serde_json::Value>().to_string();
    Request::post("/").body(Body::from(body)).unwrap()
}

async fn handle(State(seen): State<Seen>, Extension(claimed): Extension<Claimed>) -> StatusCode {
    let ids = claimed.messages().iter().map(|m| m.key().id().to_owned());
    let ids: Vec<String> = ids.collect();
    seen.lock().unwrap().extend(ids.clone());
    for message in claimed.messages() {
        match message.key().id() {
            id if id.starts_with("done") => {
                claimed.settle(message.key(), Disposition::Record);
            }
            id if id.starts_with("lost") => {
                claimed.settle(message.key(), Disposition::Unknown);
            }
            _ => {}
        }
    }
    assert!(!ids.iter().any(|id| id.starts_with("panic")), "told to");
    StatusCode::OK
}

#[tokio::test(start_paused = true)]
async fn a_webhook_is_never_told_2xx_while_the_outcome_is_unknown() {
    let hook = Hook::new();
    hook.panics(&["panic"]).await;
    for _ in 0..3 {
        is_unknown(hook.post(&["panic"]).await).await;
    }
    assert!(hook.seen().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_fresh_runs_and_is_done_beside_what_is_unknown() {
    let hook = Hook::new();
    hook.panics(&["panic"]).await;
    is_unknown(hook.post(&["a", "panic", "b"]).await).await;
    assert_eq!(hook.seen(), ["a", "b"]);
    assert_eq!(hook.post(&["a", "b"]).await.status(), 200);
    is_unknown(hook.post(&["a", "panic", "b"]).await).await;
    assert!(hook.seen().is_empty());
    let key = Key::new("hook", "", &["panic"]);
    let settled = hook.layer.settle_unknown(&key, Known::Done).await;
    settled.unwrap();
    assert_eq!(hook.post(&["a", "panic", "b"]).await.status(), 200);
    assert!(hook.seen().is_empty());
    assert_eq!(hook.layer.counts().unknown, 2);
}

#[tokio::test(start_paused = true)]
async fn what_the_handler_has_said_counts_also_when_it_panics_later() {
    let hook = Hook::new();
    hook.panics(&["done", "panic", "a"]).await;
    assert_eq!(hook.post(&["done"]).await.status(), 200);
    for id in ["panic", "a"] {
        is_unknown(hook.post(&[id]).await).await;
    }
    let counts = hook.layer.counts();
    assert_eq!((counts.recorded, counts.parked), (1, 2));
    assert!(hook.seen().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_message_that_the_handler_does_not_know_of_is_parked_alone() {
    let hook = Hook::new();
    is_unknown(hook.post(&["a", "lost"]).await).await;
    assert_eq!(hook.post(&["a"]).await.status(), 200);
    is_unknown(hook.post(&["lost"]).await).await;
    assert_eq!(hook.seen(), ["a", "lost"]);
    assert_eq!(hook.layer.counts().parked, 1);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_the_handler_does_not_know_of_runs_again_where_nothing_is_parked() {
    let hook = Hook::of(|layer| layer.on_unknown(OnUnknown::RunAgain));
    assert_eq!(hook.post(&["a", "lost"]).await.status(), 503);
    assert_eq!(hook.post(&["a", "lost"]).await.status(), 503);
    assert_eq!(hook.seen(), ["a", "lost", "lost"]);
}
