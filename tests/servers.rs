//! Proves that one layer stands before axum, a bare hyper server and a tonic server, between
//! layers of tower-http, over real sockets.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(
    clippy::disallowed_methods,
    reason = "a test owns the tasks that it spawns"
)]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::util::MapRequestLayer;
use tower::{ServiceBuilder, service_fn};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::cors::CorsLayer;
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;
use tower_idempotency::channel::{IdempotencyKey, Scope};
use tower_idempotency::store::MemoryStore;
use tower_idempotency::{BoxError, IdempotencyLayer, RequestBody};

type Layered = IdempotencyLayer<MemoryStore, IdempotencyKey>;

fn layer() -> Layered {
    let channel = IdempotencyKey::scoped_by(Scope::header("x-user"));
    IdempotencyLayer::new(MemoryStore::new(), channel)
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

#[derive(Debug, PartialEq)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

/// Posts one keyed message over a connection of its own.
async fn send(address: SocketAddr, http2: bool, key: &str) -> Answer {
    let builder = reqwest::Client::builder();
    let client = if http2 {
        builder.http2_prior_knowledge()
    } else {
        builder
    };
    let request = client
        .build()
        .unwrap()
        .post(format!("http://{address}/messages"))
        .header("x-user", "alice")
        .header("idempotency-key", key)
        .body("hello");
    let response = request.send().await.unwrap();
    let (status, mut headers) = (response.status(), response.headers().clone());
    headers.remove("date");
    let body = response.bytes().await.unwrap();
    Answer {
        status,
        headers,
        body,
    }
}

/// Sends twice; the second answer is the first one, marked.
async fn twice(address: SocketAddr, http2: bool) {
    let key = format!("k-{http2}");
    let first = send(address, http2, &key).await;
    assert_eq!(first.status, StatusCode::CREATED, "{first:?}");
    let mut second = send(address, http2, &key).await;
    let marker = second.headers.remove("idempotency-replayed");
    assert_eq!(marker.unwrap(), "true");
    assert_eq!(second, first);
}

#[tokio::test]
async fn axum_between_layers_on_both_sides() {
    let runs = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&runs);
    let handle = move |body: String| async move {
        let run = counted.fetch_add(1, Ordering::SeqCst);
        (StatusCode::CREATED, [("x-run", run.to_string())], body)
    };
    let inside = ServiceBuilder::new()
        .layer(TraceLayer::new_for_http())
        .layer(RequestBodyLimitLayer::new(4096))
        .layer(SetResponseHeaderLayer::overriding(
            http::header::SERVER,
            http::HeaderValue::from_static("chat"),
        ))
        .layer(CatchPanicLayer::new());
    let outside = ServiceBuilder::new()
        .layer(TraceLayer::new_for_http())
        .layer(TimeoutLayer::with_status_code(
            StatusCode::REQUEST_TIMEOUT,
            Duration::from_secs(30),
        ))
        .layer(CorsLayer::permissive())
        .layer(CompressionLayer::new());
    let app = Router::new()
        .route("/messages", post(handle))
        .layer(inside)
        .layer(layer())
        .layer(outside);
    let (listener, address) = listen().await;
    let server = tokio::spawn(axum::serve(listener, app).into_future());
    twice(address, false).await;
    twice(address, true).await;
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    server.abort();
}

#[tokio::test]
async fn one_service_builder_holds_layers_on_both_sides() {
    let stack = ServiceBuilder::new()
        .layer(TraceLayer::new_for_http())
        .layer(CompressionLayer::new())
        .layer(layer())
        .layer(MapRequestLayer::new(|request: Request<_>| request))
        .layer(TimeoutLayer::with_status_code(
            StatusCode::GATEWAY_TIMEOUT,
            Duration::from_secs(30),
        ));
    let handle = |body: String| async move { (StatusCode::CREATED, body) };
    let app = Router::new().route("/messages", post(handle)).layer(stack);
    let (listener, address) = listen().await;
    let server = tokio::spawn(axum::serve(listener, app).into_future());
    twice(address, false).await;
    server.abort();
}

/// Serves HTTP/1 and HTTP/2 without any framework.
async fn serve<S, R>(listener: TcpListener, service: S)
where
    S: tower::Service<Request<Incoming>, Response = Response<R>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
    R: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let service = TowerToHyperService::new(service.clone());
        let connection = async move {
            let server = auto::Builder::new(TokioExecutor::new());
            server
                .serve_connection(TokioIo::new(stream), service)
                .await
                .ok();
        };
        tokio::spawn(connection);
    }
}

#[tokio::test]
async fn a_bare_hyper_server_with_http_1_and_2() {
    let layer = layer();
    let handler = service_fn(|request: Request<RequestBody<Incoming>>| async {
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let response = Response::builder().status(201).body(Full::new(body));
        Ok::<_, Infallible>(response.unwrap())
    });
    let service = ServiceBuilder::new()
        .layer(TraceLayer::new_for_http())
        .layer(layer.clone())
        .layer(TraceLayer::new_for_http())
        .service(handler);
    let (listener, address) = listen().await;
    let server = tokio::spawn(serve(listener, service));
    twice(address, false).await;
    twice(address, true).await;
    assert_eq!((layer.counts().runs, layer.counts().replayed), (2, 2));
    server.abort();
}

#[tokio::test]
async fn a_tonic_server_replays_messages_and_trailers() {
    let layer = layer();
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter
        .set_service_status("chat", tonic_health::ServingStatus::Serving)
        .await;
    let (listener, address) = listen().await;
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    let server = Server::builder()
        .layer(TraceLayer::new_for_grpc())
        .layer(layer.clone())
        .layer(TraceLayer::new_for_grpc())
        .add_service(health)
        .serve_with_incoming(incoming);
    let server = tokio::spawn(server);
    let channel = tonic::transport::Channel::from_shared(format!("http://{address}")).unwrap();
    let mut client = HealthClient::new(channel.connect().await.unwrap());
    let mut ask = async |service: &str, key: &'static str| {
        let message = HealthCheckRequest {
            service: service.to_owned(),
        };
        let mut request = tonic::Request::new(message);
        request
            .metadata_mut()
            .insert("x-user", "alice".parse().unwrap());
        request
            .metadata_mut()
            .insert("idempotency-key", key.parse().unwrap());
        client.check(request).await
    };
    let first = ask("chat", "a").await.unwrap();
    let second = ask("chat", "a").await.unwrap();
    assert_eq!(first.get_ref(), second.get_ref());
    assert!(second.metadata().contains_key("idempotency-replayed"));
    // An error is no record: it runs again.
    for _ in 0..2 {
        let status = ask("nothing", "b").await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::NotFound);
    }
    // Another message under the same key is refused in gRPC's words.
    let status = ask("nothing", "a").await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::FailedPrecondition);
    assert!(status.message().contains("The body differs"), "{status:?}");
    let counts = layer.counts();
    assert_eq!((counts.runs, counts.replayed, counts.released), (3, 1, 2));
    server.abort();
}
