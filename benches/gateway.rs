//! Requests per second through the gateway's proxy, with the layer and without it, over sockets.
//!
//! `cargo bench --bench gateway`. Server, upstream and clients share the machine, so the two are
//! measured in turns, and the medians are compared. Each request is a message of its own: claimed,
//! passed on, recorded.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "a bench"
)]
#![expect(clippy::disallowed_methods, reason = "a bench owns its tasks")]

#[path = "../examples/gateway/forward.rs"]
mod forward;
#[path = "../examples/gateway/proxy.rs"]
mod proxy;
#[path = "../examples/gateway/upgrade.rs"]
mod upgrade;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use sha2::Sha256;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tower::{Layer, service_fn};
use tower_idempotency::channel::{IdempotencyKey, Scope, WhatsApp};
use tower_idempotency::store::MemoryStore;
use tower_idempotency::verify::MetaSignature;
use tower_idempotency::{BoxError, IdempotencyLayer};

use crate::forward::Peer;
use crate::proxy::Proxy;

const CONNECTIONS: usize = 32;
const ROUNDS: usize = 7;
const TIMEOUT: Duration = Duration::from_secs(10);
const SECRET: &str = "app secret";
const TEXT: &str = include_str!("../tests/fixtures/whatsapp/text.json");

/// Makes the nth request.
type Make = fn(u64) -> Request<Full<Bytes>>;

#[tokio::main]
async fn main() {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let time = Duration::from_millis(if is_test { 20 } else { 1000 });
    let upstream = start(service_fn(endpoint)).await;
    let authority = || upstream.to_string().parse().unwrap();
    let bare = start(Proxy::<Incoming>::new(authority(), TIMEOUT)).await;

    let channel = IdempotencyKey::scoped_by(Scope::header("x-user"));
    let layer = IdempotencyLayer::new(MemoryStore::new(), channel);
    let chat = start(layer.layer(Proxy::new(authority(), TIMEOUT))).await;
    compare(
        "a web chat's message of 1 KiB",
        time,
        (bare, chat),
        chat_message,
    )
    .await;

    let channel = WhatsApp::verified_by(MetaSignature::new(SECRET));
    let layer = IdempotencyLayer::new(MemoryStore::new(), channel);
    let webhooks = start(layer.layer(Proxy::new(authority(), TIMEOUT))).await;
    compare(
        "a signed WhatsApp delivery",
        time,
        (bare, webhooks),
        delivery,
    )
    .await;
}

async fn compare(
    what: &str,
    time: Duration,
    (bare, layered): (SocketAddr, SocketAddr),
    make: Make,
) {
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        without.push(rate(bare, time, make).await);
        with.push(rate(layered, time, make).await);
    }
    let (without, with) = (median(without), median(with));
    println!(
        "{what}: {without:.0}/s without the layer, {with:.0}/s with it: {:.2}",
        with / without
    );
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or_default()
}

/// How many requests a second come back, over several connections.
async fn rate(address: SocketAddr, time: Duration, make: Make) -> f64 {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let (done, ends) = (Arc::new(AtomicU64::new(0)), Instant::now() + time);
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..CONNECTIONS {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (mut send, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        let done = Arc::clone(&done);
        clients.spawn(async move {
            while Instant::now() < ends {
                let request = make(NUMBER.fetch_add(1, Ordering::Relaxed));
                let answer = send.send_request(request).await.unwrap();
                assert!(answer.status().is_success(), "{answer:?}");
                answer.into_body().collect().await.unwrap();
                done.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    clients.join_all().await;
    done.load(Ordering::Relaxed) as f64 / time.as_secs_f64()
}

fn chat_message(number: u64) -> Request<Full<Bytes>> {
    Request::post("/chat/7")
        .header("host", "chat.example")
        .header("x-user", "ann")
        .header("idempotency-key", number.to_string())
        .body(Full::from("x".repeat(1024)))
        .unwrap()
}

fn delivery(number: u64) -> Request<Full<Bytes>> {
    let body = TEXT.replace("wamid.", &format!("wamid.{number}"));
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    let signature = format!("sha256={}", hex::encode(mac.finalize().into_bytes()));
    Request::post("/webhooks/whatsapp")
        .header("host", "chat.example")
        .header("x-hub-signature-256", signature)
        .body(Full::from(body))
        .unwrap()
}

async fn endpoint(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    request.into_body().collect().await.unwrap();
    Ok(Response::new(Full::from("handled")))
}

/// Serves HTTP/1 as the gateway does.
async fn start<S, R>(service: S) -> SocketAddr
where
    S: tower::Service<Request<Incoming>, Response = Response<R>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
    R: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, peer)) = listener.accept().await {
            stream.set_nodelay(true).unwrap();
            let service = tower::ServiceBuilder::new()
                .map_request(move |mut request: Request<Incoming>| {
                    request.extensions_mut().insert(Peer(peer));
                    request
                })
                .service(service.clone());
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
            tokio::spawn(connection.with_upgrades());
        }
    });
    address
}
