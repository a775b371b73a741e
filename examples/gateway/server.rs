//! Listens, finds the route of each request, and ends in order.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{Request, Response, StatusCode};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout};
use tower_idempotency::BoxError;
use tower_idempotency::store::BoxStore;

use crate::check::Settings;
use crate::forward::Peer;
use crate::metrics;
use crate::proxy::refusal;
use crate::route::{Body, Route};

pub(crate) struct Server {
    listener: TcpListener,
    metrics: Option<TcpListener>,
    drain: Duration,
    routes: Arc<Routes>,
}

/// The routes, longest path first.
struct Routes(Vec<Route>);

impl Server {
    pub(crate) async fn bind(settings: Settings, store: &BoxStore) -> Result<Self, BoxError> {
        let bind = async |address: SocketAddr| {
            let bound = TcpListener::bind(address).await;
            bound.map_err(|e| BoxError::from(format!("{address}: {e}")))
        };
        let mut routes: Vec<Route> = settings
            .routes
            .into_iter()
            .map(|route| Route::new(route, store.clone()))
            .collect::<Result<_, _>>()?;
        routes.sort_by_key(|route| std::cmp::Reverse(route.path.len()));
        Ok(Self {
            listener: bind(settings.listen).await?,
            metrics: match settings.metrics {
                Some(address) => Some(bind(address).await?),
                None => None,
            },
            drain: settings.drain,
            routes: Arc::new(Routes(routes)),
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        local(&self.listener)
    }

    pub(crate) fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(local)
    }

    /// Serves until `stopped`, then lets connections and runs end. Gives the number of runs that
    /// still go on after the time that they have for it.
    pub(crate) async fn run(self, stopped: impl Future<Output = ()>) -> usize {
        let routes = self.routes;
        if let Some(listener) = self.metrics {
            tokio::spawn(serve_metrics(listener, Arc::clone(&routes)));
        }
        let connections = GracefulShutdown::new();
        accept_until(stopped, self.listener, &routes, &connections).await;
        let ends = Instant::now() + self.drain;
        // Connections that are left then are cut; their runs go on.
        timeout(self.drain, connections.shutdown()).await.ok();
        let left = join_all(routes.0.iter().map(|route| route.drain(ends))).await;
        left.into_iter().sum()
    }
}

async fn accept_until(
    stopped: impl Future<Output = ()>,
    listener: TcpListener,
    routes: &Arc<Routes>,
    connections: &GracefulShutdown,
) {
    let mut stopped = pin!(stopped);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stopped => return,
        };
        match accepted {
            Ok((stream, peer)) => serve(stream, Peer(peer), routes, connections),
            // Mostly too many open files: some will close.
            Err(error) => {
                tracing::error!(%error, "no connection could be accepted");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

impl Routes {
    async fn answer(&self, request: Request<Incoming>) -> Response<Either<Body, Full<Bytes>>> {
        let path = request.uri().path();
        let Some(route) = self.0.iter().find(|route| route.matches(path)) else {
            let (head, _) = refusal(StatusCode::NOT_FOUND).into_parts();
            return Response::from_parts(head, Either::Right(Full::from("Not Found")));
        };
        route.answer(request).await.map(Either::Left)
    }
}

fn serve(stream: TcpStream, peer: Peer, routes: &Arc<Routes>, connections: &GracefulShutdown) {
    let routes = Arc::clone(routes);
    let answer = service_fn(move |mut request: Request<Incoming>| {
        let routes = Arc::clone(&routes);
        request.extensions_mut().insert(peer);
        async move { Ok::<_, Infallible>(routes.answer(request).await) }
    });
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new());
    // Answers are small and final: they need not wait for more to send.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection is slower than it could be");
    }
    let connection = server.serve_connection_with_upgrades(TokioIo::new(stream), answer);
    let connection = connections.watch(connection.into_owned());
    // A client that breaks off is no concern of the gateway's.
    tokio::spawn(async { drop(connection.await) });
}

async fn serve_metrics(listener: TcpListener, routes: Arc<Routes>) {
    while let Ok((stream, _)) = listener.accept().await {
        let routes = Arc::clone(&routes);
        let answer = service_fn(move |_| {
            let told = routes.0.iter().map(|route| (&*route.path, route.told()));
            let text = metrics::text(&told.collect::<Vec<_>>());
            async { Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(text))) }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), answer);
        tokio::spawn(async { drop(connection.await) });
    }
}

/// The address of a bound listener.
fn local(listener: &TcpListener) -> SocketAddr {
    let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
    listener.local_addr().unwrap_or(unknown)
}
