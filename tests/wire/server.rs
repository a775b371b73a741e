//! The servers: one app behind one layer, on each of them.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tower::{ServiceBuilder, service_fn};
use tower_idempotency::channel::IdempotencyKey;
use tower_idempotency::store::{BoxStore, MemoryStore};
use tower_idempotency::{BoxError, IdempotencyLayer, RequestBody};

use crate::app::App;

pub(crate) type Layered = IdempotencyLayer<BoxStore, IdempotencyKey>;

pub(crate) fn layer() -> Layered {
    layer_on(BoxStore::new(MemoryStore::new()))
}

pub(crate) fn layer_on(store: BoxStore) -> Layered {
    IdempotencyLayer::new(store, IdempotencyKey::unscoped())
}

pub(crate) const ALL: [Kind; 4] = [Kind::Axum, Kind::Hyper1, Kind::Hyper2, Kind::Tonic];

/// What stands between the layer and the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Axum,
    Hyper1,
    Hyper2,
    Tonic,
}

impl Kind {
    pub(crate) fn speaks_http1(self) -> bool {
        matches!(self, Self::Axum | Self::Hyper1)
    }

    pub(crate) fn speaks_http2(self) -> bool {
        matches!(self, Self::Axum | Self::Hyper2 | Self::Tonic)
    }
}

/// A server that ends with its test.
pub(crate) struct Server {
    pub(crate) kind: Kind,
    pub(crate) address: SocketAddr,
    pub(crate) app: App,
    pub(crate) layer: Layered,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(crate) async fn start(kind: Kind, layer: Layered) -> Self {
        Self::of(kind, layer, App::default()).await
    }

    pub(crate) async fn of(kind: Kind, layer: Layered, app: App) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = match kind {
            Kind::Axum => tokio::spawn(axum_server(listener, app.clone(), layer.clone())),
            Kind::Tonic => tokio::spawn(tonic_server(listener, app.clone(), layer.clone())),
            Kind::Hyper1 | Kind::Hyper2 => {
                tokio::spawn(hyper_server(kind, listener, app.clone(), layer.clone()))
            }
        };
        Self {
            kind,
            address,
            app,
            layer,
            task,
        }
    }
}

fn router(app: App, layer: Layered) -> axum::Router {
    let answer = move |request: axum::extract::Request| {
        let answer = app.clone().answer(request);
        async { answer.await.map(axum::body::Body::new) }
    };
    axum::Router::new().fallback(answer).layer(layer)
}

async fn axum_server(listener: TcpListener, app: App, layer: Layered) {
    axum::serve(listener, router(app, layer)).await.unwrap();
}

async fn tonic_server(listener: TcpListener, app: App, layer: Layered) {
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    let answer = move |request: axum::extract::Request| {
        let answer = app.clone().answer(request);
        async { answer.await.map(axum::body::Body::new) }
    };
    let routes = tonic::service::Routes::from(axum::Router::new().fallback(answer));
    let server = tonic::transport::Server::builder()
        .layer(layer)
        .add_routes(routes);
    server.serve_with_incoming(incoming).await.unwrap();
}

async fn hyper_server(kind: Kind, listener: TcpListener, app: App, layer: Layered) {
    let service = layered(app, layer);
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        tokio::spawn(connection(kind, stream, service.clone()));
    }
}

/// The app behind the layer, for a bare hyper server.
pub(crate) fn layered(
    app: App,
    layer: Layered,
) -> impl tower::Service<
    Request<Incoming>,
    Response = Response<impl Body<Data = Bytes, Error = BoxError> + Send + use<>>,
    Error = Infallible,
    Future: Send,
> + Clone
+ Send
+ 'static {
    let answer = move |request: Request<RequestBody<Incoming>>| {
        let answer = app.clone().answer(request);
        async { Ok::<_, Infallible>(answer.await) }
    };
    ServiceBuilder::new()
        .layer(layer)
        .service(service_fn(answer))
}

/// Serves one connection of HTTP/1 or HTTP/2.
pub(crate) async fn connection<I, S, R>(kind: Kind, io: I, service: S)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: tower::Service<Request<Incoming>, Response = Response<R>, Error: Into<BoxError>>,
    S: Clone + Send + 'static,
    S::Future: Send,
    R: Body<Data = Bytes, Error = BoxError> + Send + 'static,
{
    let builder = auto::Builder::new(TokioExecutor::new());
    let builder = match kind {
        Kind::Hyper1 => builder.http1_only(),
        Kind::Hyper2 => builder.http2_only(),
        Kind::Axum | Kind::Tonic => builder,
    };
    let service = TowerToHyperService::new(service);
    // A peer that breaks off makes an error of it, which is no fault here.
    builder
        .serve_connection_with_upgrades(TokioIo::new(io), service)
        .await
        .ok();
}
