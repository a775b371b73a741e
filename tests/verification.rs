//! Verification comes first: what is not verified is answered 401, is not read, claims nothing and
//! runs nothing, so that nobody suppresses a message by guessing its id.
#![cfg(feature = "verify")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tower::{Layer, Service, service_fn};
use tower_idempotency::channel::{Channel, Concern, HeaderId, Refusal, Terms};
use tower_idempotency::store::{MemoryStore, Sight, Store};
use tower_idempotency::verify::{TelegramToken, Unverified, Verified};
use tower_idempotency::{Delivery, IdempotencyLayer, Key, RequestBody};

/// A channel that counts how often it is asked for deliveries.
#[derive(Clone)]
struct Watched {
    inner: Unverified<HeaderId>,
    reads: Arc<AtomicU64>,
}

impl Channel for Watched {
    fn terms(&self, head: &Parts) -> &Terms {
        self.inner.terms(head)
    }

    fn concern(&self, head: &Parts) -> Result<Concern, Refusal> {
        match head.headers.contains_key("x-id") {
            true => self.inner.concern(head),
            false if head.method.is_safe() => Ok(Concern::Pass),
            false => Ok(Concern::NoKey),
        }
    }

    fn deliveries(&self, head: &Parts, body: &[u8]) -> Result<Vec<Delivery>, Refusal> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.inner.deliveries(head, body)
    }
}

/// A bot behind the layer: which answers it gave, and what became of its messages.
struct Bot {
    store: MemoryStore,
    layer: IdempotencyLayer<MemoryStore, Verified<Watched, TelegramToken>>,
    reads: Arc<AtomicU64>,
    runs: Arc<AtomicU64>,
}

impl Bot {
    fn new() -> Self {
        let watched = Watched {
            inner: HeaderId::new("bot", "x-id").unverified(),
            reads: Arc::default(),
        };
        let store = MemoryStore::new();
        let reads = Arc::clone(&watched.reads);
        let channel = Verified::new(watched, TelegramToken::new("secret"));
        Self {
            layer: IdempotencyLayer::new(store.clone(), channel),
            store,
            reads,
            runs: Arc::default(),
        }
    }

    async fn send(&self, method: Method, token: &str, id: Option<&str>) -> (StatusCode, Bytes) {
        let runs = Arc::clone(&self.runs);
        let handler = service_fn(move |_: Request<RequestBody<Full<Bytes>>>| {
            runs.fetch_add(1, Ordering::SeqCst);
            async { Ok::<_, Infallible>(Response::new(Full::from("handled"))) }
        });
        let mut request = Request::builder()
            .method(method)
            .header("x-telegram-bot-api-secret-token", token);
        if let Some(id) = id {
            request = request.header("x-id", id);
        }
        let request = request.body(Full::from("text")).unwrap();
        let response = self.layer.layer(handler).call(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, body)
    }

    fn runs(&self) -> u64 {
        self.runs.load(Ordering::SeqCst)
    }

    async fn sees_nothing_of(&self, id: &str) -> bool {
        let sights = self.store.look(&[Key::new("bot", "", &[id])]).await;
        matches!(sights.unwrap().as_slice(), [Sight::Absent])
    }
}

#[tokio::test]
async fn a_refused_request_is_401_and_leaves_no_trace() {
    let bot = Bot::new();
    let (status, body) = bot.send(Method::POST, "guessed", Some("7")).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    assert!(!body.windows(6).any(|it| it == b"secret"), "{body:?}");
    assert_eq!(bot.runs(), 0);
    assert_eq!(bot.reads.load(Ordering::SeqCst), 0);
    assert!(bot.sees_nothing_of("7").await);
}

#[tokio::test]
async fn a_guessed_id_does_not_suppress_the_message() {
    let bot = Bot::new();
    bot.send(Method::POST, "guessed", Some("7")).await;
    let (status, body) = bot.send(Method::POST, "secret", Some("7")).await;
    assert_eq!((status, &body[..]), (StatusCode::OK, &b"handled"[..]));
    assert_eq!(bot.runs(), 1);
}

#[tokio::test]
async fn a_record_is_not_shown_to_who_is_not_verified() {
    let bot = Bot::new();
    bot.send(Method::POST, "secret", Some("7")).await;
    let (status, body) = bot.send(Method::POST, "guessed", Some("7")).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    assert!(!body.windows(7).any(|it| it == b"handled"), "{body:?}");
}

#[tokio::test]
async fn a_request_without_an_id_is_verified_too() {
    let bot = Bot::new();
    let (status, _) = bot.send(Method::POST, "guessed", None).await;
    assert_eq!((status, bot.runs()), (StatusCode::UNAUTHORIZED, 0));
    let (status, _) = bot.send(Method::POST, "secret", None).await;
    assert_eq!((status, bot.runs()), (StatusCode::OK, 1));
}

#[tokio::test]
async fn a_safe_method_passes_without_a_signature() {
    let bot = Bot::new();
    let (status, _) = bot.send(Method::GET, "", None).await;
    assert_eq!((status, bot.runs()), (StatusCode::OK, 1));
}
