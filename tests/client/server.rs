//! A server that keeps the messages it was sent, with the layer and without.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use http_body::Body;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tower_idempotency::IdempotencyLayer;
use tower_idempotency::channel::IdempotencyKey;
use tower_idempotency::store::MemoryStore;

/// What a message is answered with.
pub(crate) const ANSWER: &str = "the server keeps this message";

/// A listening server; it ends when it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    messages: Arc<Mutex<Vec<String>>>,
    _task: JoinSet<()>,
}

impl Server {
    /// A server without the layer, whose handler takes some time.
    pub(crate) async fn bare(takes: Duration) -> Self {
        Self::start(takes, |routes| routes).await
    }

    /// A server with the layer.
    pub(crate) async fn with(layer: IdempotencyLayer<MemoryStore, IdempotencyKey>) -> Self {
        Self::start(Duration::ZERO, |routes| routes.layer(layer)).await
    }

    /// A server with the layer whose handler takes some time.
    pub(crate) async fn slow(
        takes: Duration,
        layer: IdempotencyLayer<MemoryStore, IdempotencyKey>,
    ) -> Self {
        Self::start(takes, |routes| routes.layer(layer)).await
    }

    async fn start(takes: Duration, around: impl FnOnce(Router) -> Router) -> Self {
        let messages = Arc::<Mutex<Vec<String>>>::default();
        let kept = Arc::clone(&messages);
        let keep = async move |text: String| {
            tokio::time::sleep(takes).await;
            kept.lock().unwrap().push(text);
            (StatusCode::CREATED, ANSWER)
        };
        let routes = around(Router::new().route("/messages", post(keep)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut task = JoinSet::new();
        task.spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self {
            address,
            messages,
            _task: task,
        }
    }

    /// How often each text is kept.
    pub(crate) fn texts(&self) -> BTreeMap<String, usize> {
        let mut texts = BTreeMap::new();
        for text in self.messages.lock().unwrap().iter() {
            *texts.entry(text.clone()).or_default() += 1;
        }
        texts
    }
}

/// The layer for clients that are one another's peers.
pub(crate) fn layer() -> IdempotencyLayer<MemoryStore, IdempotencyKey> {
    IdempotencyLayer::new(MemoryStore::new(), IdempotencyKey::unscoped())
}

/// hyper-util's client, for bodies of one kind.
pub(crate) fn hyper_client<B>() -> Client<HttpConnector, B>
where
    B: Body + Send,
    B::Data: Send,
{
    Client::builder(TokioExecutor::new()).build_http()
}
