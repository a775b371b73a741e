//! The client and a server with the layer understand each other: what is running is waited for,
//! what is refused or done is not asked for again.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::{Full, LengthLimitError};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tower::{BoxError, ServiceBuilder, ServiceExt};
use tower_idempotency::IdempotencyLayer;
use tower_idempotency::channel::IdempotencyKey;
use tower_idempotency::client::{CollectLayer, Once, Repeat, RetryPolicy, SetKeyLayer};
use tower_idempotency::store::MemoryStore;

use crate::lossy::{Fate, Lossy};
use crate::server::{ANSWER, Server, hyper_client, layer};

#[tokio::test]
async fn a_message_that_is_still_running_is_asked_for_later() {
    let channel = IdempotencyKey::unscoped().wait(Duration::ZERO);
    let layer = IdempotencyLayer::new(MemoryStore::new(), channel).lease(Duration::from_secs(1));
    let server = Server::slow(Duration::from_millis(400), layer.clone()).await;
    let proxy = Lossy::before(server.address, |_| Fate::Pass).await;
    let began = Instant::now();
    let answer = send(&proxy, Duration::from_millis(100), message(full("hello"))).await;

    let answer = answer.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.body()[..]),
        (201, ANSWER.as_bytes())
    );
    assert_eq!(answer.headers()["idempotency-replayed"], "true");
    assert_eq!(layer.counts().busy, 1);
    assert!(began.elapsed() >= Duration::from_secs(1));
    assert_eq!(proxy.posts(), 3);
    assert_eq!(server.texts()["hello"], 1);
}

#[tokio::test]
async fn a_message_whose_answer_was_not_kept_is_not_asked_for_again() {
    let server = Server::with(layer().max_response(1)).await;
    let proxy = lose_the_first(&server).await;
    let answer = send(&proxy, LONG, message(full("hello"))).await.unwrap();

    assert_eq!(answer.status(), 409);
    assert!(String::from_utf8_lossy(answer.body()).contains("response-not-kept"));
    assert_eq!(proxy.posts(), 2);
    assert_eq!(server.texts()["hello"], 1);
}

#[tokio::test]
async fn a_key_that_belongs_to_another_request_is_not_tried_again() {
    let server = Server::with(layer()).await;
    let proxy = Lossy::before(server.address, |_| Fate::Pass).await;
    for (text, status) in [("helo", 201), ("hello", 422)] {
        let mut edited = message(full(text));
        let key = "made-when-the-user-hit-send".parse().unwrap();
        edited.headers_mut().insert("idempotency-key", key);
        assert_eq!(send(&proxy, LONG, edited).await.unwrap().status(), status);
    }
    assert_eq!(proxy.posts(), 2);
    assert_eq!(server.texts().len(), 1);
}

#[tokio::test]
async fn a_stalled_answer_is_asked_for_again() {
    let server = Server::with(layer()).await;
    let stall = |number| match number {
        0 => Fate::Late(Duration::from_mins(10)),
        _ => Fate::Pass,
    };
    let proxy = Lossy::before(server.address, stall).await;
    let answer = send(&proxy, Duration::from_millis(100), message(full("hello"))).await;
    assert_eq!(answer.unwrap().status(), 201);
    assert_eq!(server.texts()["hello"], 1);
}

#[tokio::test]
async fn a_server_that_comes_up_later_is_asked_again() {
    let server = Server::with(layer()).await;
    let address = free_address().await;
    let (failed, mut failures) = mpsc::unbounded_channel();
    let policy = RetryPolicy::new().retry_errors(move |error: &BoxError| {
        failed.send(error.to_string()).unwrap();
        true
    });
    let client = ServiceBuilder::new()
        .layer(SetKeyLayer::v7())
        .retry(policy)
        .layer(CollectLayer::new(1024))
        .service(hyper_client());
    let request = to(address, message(full("hello")));
    let (answer, _proxy) = tokio::join!(client.oneshot(request), async {
        failures.recv().await.unwrap();
        Lossy::at(address, server.address, |_| Fate::Pass).await
    });
    assert_eq!(answer.unwrap().status(), 201);
    assert_eq!(server.texts()["hello"], 1);
}

#[tokio::test]
async fn a_body_that_can_be_sent_once_is_sent_once() {
    let server = Server::with(layer()).await;
    let proxy = lose_the_first(&server).await;
    let lost = send(&proxy, LONG, message(Once::new(full("hello")))).await;
    assert!(lost.is_err(), "{lost:?}");
    assert_eq!(proxy.posts(), 1);
}

#[tokio::test]
async fn an_answer_over_the_limit_is_not_asked_for_again() {
    let server = Server::with(layer()).await;
    let proxy = Lossy::before(server.address, |_| Fate::Pass).await;
    let client = ServiceBuilder::new()
        .layer(SetKeyLayer::v7())
        .retry(RetryPolicy::new())
        .layer(CollectLayer::new(ANSWER.len() - 1))
        .service(hyper_client());
    let request = to(proxy.address, message(full("hello")));
    let error = client.oneshot(request).await.unwrap_err();
    assert!(error.is::<LengthLimitError>(), "{error:?}");
    assert_eq!(proxy.posts(), 1);
}

/// Longer than anything in these tests takes.
const LONG: Duration = Duration::from_mins(1);

fn full(text: &'static str) -> Full<Bytes> {
    Full::from(text)
}

fn message<B>(body: B) -> Request<B> {
    Request::post("/messages").body(body).unwrap()
}

fn to<B>(address: SocketAddr, mut request: Request<B>) -> Request<B> {
    let uri = format!("http://{address}{}", request.uri());
    *request.uri_mut() = uri.parse().unwrap();
    request
}

/// Sends a message as the docs say it; an attempt may take so long.
async fn send<B>(
    proxy: &Lossy,
    attempt: Duration,
    request: Request<B>,
) -> Result<Response<Bytes>, BoxError>
where
    B: Body + Repeat + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    ServiceBuilder::new()
        .layer(SetKeyLayer::v7())
        .retry(RetryPolicy::new())
        .timeout(attempt)
        .layer(CollectLayer::new(1024))
        .service(hyper_client())
        .oneshot(to(proxy.address, request))
        .await
}

async fn lose_the_first(server: &Server) -> Lossy {
    let fate = |number| match number {
        0 => Fate::LoseAnswer,
        _ => Fate::Pass,
    };
    Lossy::before(server.address, fate).await
}

/// Where nobody listens yet.
async fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap()
}
