//! A server whose handler does as it is told, and its senders.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tokio::time::sleep;
use tower::ServiceExt;
use tower_http::timeout::TimeoutLayer;
use tower_idempotency::channel::{Channel, IdempotencyKey, Scope};
use tower_idempotency::store::{MemoryStore, Store};
use tower_idempotency::{BoxError, Claimed, Disposition, IdempotencyLayer, OnUnknown};

pub(crate) const UNKNOWN_FOR: Duration = Duration::from_hours(24);

pub(crate) fn channel() -> IdempotencyKey {
    IdempotencyKey::scoped_by(Scope::header("x-user"))
}

/// A layer that parks, over a store of its own.
pub(crate) fn parking() -> IdempotencyLayer<MemoryStore, IdempotencyKey> {
    parking_in(MemoryStore::new())
}

pub(crate) fn parking_in<S: Store>(store: S) -> IdempotencyLayer<S, IdempotencyKey> {
    IdempotencyLayer::new(store, channel()).on_unknown(OnUnknown::Park {
        unknown_for: UNKNOWN_FOR,
    })
}

/// The server.
pub(crate) struct App<S, C> {
    pub(crate) layer: IdempotencyLayer<S, C>,
    pub(crate) router: Router,
    runs: Arc<AtomicU64>,
}

impl<S: Store, C: Channel> App<S, C> {
    /// A timeout of a second inside of the layer.
    pub(crate) fn new(layer: IdempotencyLayer<S, C>) -> Self {
        let runs = Arc::new(AtomicU64::new(0));
        let limit = Duration::from_secs(1);
        let router = Router::new()
            .route("/messages", post(handle))
            .route("/other", post(handle))
            .layer(TimeoutLayer::with_status_code(
                StatusCode::GATEWAY_TIMEOUT,
                limit,
            ))
            .layer(layer.clone())
            .with_state(Arc::clone(&runs));
        Self {
            layer,
            router,
            runs,
        }
    }

    pub(crate) async fn send(&self, key: &str, told: &str) -> Response {
        let sent = self.router.clone().oneshot(send(key, told));
        sent.await.unwrap()
    }

    /// The same for another path.
    pub(crate) async fn post(&self, path: &str, told: &str) -> Response {
        let mut request = send("k", told);
        *request.uri_mut() = path.parse().unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    pub(crate) fn runs(&self) -> u64 {
        self.runs.load(Ordering::SeqCst)
    }
}

/// A request that tells the handler what to do: a status, or a word that [`handle`] knows.
pub(crate) fn send(key: &str, told: &str) -> Request<Body> {
    Request::post("/messages")
        .header("x-user", "alice")
        .header("idempotency-key", key)
        .header("x-do", told)
        .body(Body::from("two, please"))
        .unwrap()
}

async fn handle(
    State(runs): State<Arc<AtomicU64>>,
    Extension(claimed): Extension<Claimed>,
    headers: HeaderMap,
) -> Response {
    let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
    let attempt = claimed.messages()[0].attempt().to_string();
    let answer = |status: u16| {
        let status = StatusCode::from_u16(status).unwrap();
        (status, [("x-attempt", attempt)], format!("run {run}")).into_response()
    };
    match headers["x-do"].to_str().unwrap() {
        "done" => answer(201),
        "panic" => panic!("told to panic"),
        "hang" => std::future::pending().await,
        "break" => broken(Duration::ZERO),
        "break-late" => broken(Duration::from_millis(100)),
        "unknown" => {
            let mut answer = answer(202);
            answer.extensions_mut().insert(Disposition::Unknown);
            answer
        }
        status => answer(status.parse().unwrap()),
    }
}

/// A body that breaks this long after its first frame.
fn broken(after: Duration) -> Response {
    let first = stream::iter([Ok(Bytes::from("run"))]);
    let rest = stream::once(async move {
        if !after.is_zero() {
            sleep(after).await;
        }
        Err::<Bytes, BoxError>("cut".into())
    });
    Body::from_stream(first.chain(rest)).into_response()
}

pub(crate) async fn text(response: Response) -> String {
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}

pub(crate) async fn is_unknown(response: Response) {
    assert_eq!(response.status(), 409);
    assert!(response.headers().contains_key("retry-after"));
    let problem = text(response).await;
    let code = "urn:tower-idempotency:outcome-unknown";
    assert!(problem.contains(code), "{problem}");
}

pub(crate) fn is_replayed(response: &Response) -> bool {
    response.headers().contains_key("idempotency-replayed")
}
