//! A handler, requests to it, and what is read of its answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use tower::ServiceExt;
use tower_idempotency::IdempotencyLayer;
use tower_idempotency::channel::IdempotencyKey;
use tower_idempotency::store::MemoryStore;

pub(crate) type Layered = IdempotencyLayer<MemoryStore, IdempotencyKey>;

pub(crate) fn layer() -> Layered {
    IdempotencyLayer::new(MemoryStore::new(), IdempotencyKey::unscoped())
}

#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<AtomicU64>);

impl Runs {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A router without layers, whose handler echoes its body at length; it takes a minute if the
/// request says `x-slow`, and panics if it says `x-panic`.
pub(crate) fn router() -> (Router, Runs) {
    let runs = Runs::default();
    let router = Router::new()
        .route("/", post(handle))
        .with_state(runs.clone());
    (router, runs)
}

async fn handle(State(runs): State<Runs>, headers: HeaderMap, body: Bytes) -> Response {
    runs.0.fetch_add(1, Ordering::SeqCst);
    if headers.contains_key("x-slow") {
        tokio::time::sleep(Duration::from_mins(1)).await;
        ::tracing::info!("the message is handled");
    }
    assert!(!headers.contains_key("x-panic"), "asked to panic");
    // Long enough to be worth compressing.
    (
        StatusCode::CREATED,
        String::from_utf8(body.repeat(50)).unwrap(),
    )
        .into_response()
}

pub(crate) const TEXT: &str = "the same message, ";

/// A message with the key `k`.
pub(crate) fn message(headers: &[(&str, &str)]) -> Request<Body> {
    with_body(headers, TEXT)
}

pub(crate) fn with_body(headers: &[(&str, &str)], body: impl Into<Body>) -> Request<Body> {
    let mut request = Request::post("/").header("idempotency-key", "k");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body.into()).unwrap()
}

/// What a client sees.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn is_replayed(&self) -> bool {
        self.header("idempotency-replayed") == "true"
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

pub(crate) async fn send(app: &Router, request: Request<Body>) -> Seen {
    let (head, body) = app.clone().oneshot(request).await.unwrap().into_parts();
    Seen {
        status: head.status,
        headers: head.headers,
        body: to_bytes(body, usize::MAX).await.unwrap(),
    }
}
