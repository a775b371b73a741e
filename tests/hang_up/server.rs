//! A server whose runs take a random time, and are counted by key.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::time::sleep;
use tower::{Layer, Service, service_fn};
use tower_idempotency::channel::IdempotencyKey;
use tower_idempotency::store::MemoryStore;
use tower_idempotency::{BoxError, Claimed, IdempotencyLayer, Keep, RequestBody};

pub(crate) const KEPT: Duration = Duration::from_mins(10);

/// How often a run of each key began, and how often it came to its end.
#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<Mutex<HashMap<String, (u32, u32)>>>);

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) layer: IdempotencyLayer<MemoryStore, IdempotencyKey>,
    pub(crate) store: MemoryStore,
    pub(crate) runs: Runs,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let store = MemoryStore::new();
        let layer = IdempotencyLayer::new(store.clone(), IdempotencyKey::unscoped());
        let layer = layer.keep(Keep::For(KEPT)).max_response(1 << 16);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let runs = Runs::default();
        let counted = runs.clone();
        let service = layer.layer(service_fn(
            move |request: Request<RequestBody<Incoming>>| {
                let runs = counted.clone();
                async { Ok::<_, Infallible>(runs.run(request).await) }
            },
        ));
        tokio::spawn(serve(listener, service));
        Self {
            address,
            layer,
            store,
            runs,
        }
    }
}

async fn serve<S, R>(listener: TcpListener, service: S)
where
    S: Service<Request<Incoming>, Response = Response<R>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
    R: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            let server = auto::Builder::new(TokioExecutor::new());
            let io = TokioIo::new(stream);
            // It breaks off for most clients here.
            server.serve_connection(io, service).await.ok();
        });
    }
}

impl Runs {
    async fn run(
        self,
        request: Request<RequestBody<Incoming>>,
    ) -> Response<UnsyncBoxBody<Bytes, BoxError>> {
        let claimed = request.extensions().get::<Claimed>().unwrap();
        let key = claimed.messages()[0].key().id().to_owned();
        self.count(&key, (1, 0));
        let body = request.into_body().collect().await.unwrap().to_bytes();
        sleep(Duration::from_micros(rand::random_range(0..4000))).await;
        if rand::random() {
            self.count(&key, (0, 1));
            let body = Full::new(body).map_err(|never| match never {});
            return Response::new(body.boxed_unsync());
        }
        let parts: Vec<_> = body.chunks(8).map(Bytes::copy_from_slice).collect();
        let last = parts.len();
        let parts = stream::iter(parts).enumerate().then(move |(at, part)| {
            let (runs, key) = (self.clone(), key.clone());
            async move {
                sleep(Duration::from_micros(rand::random_range(0..2000))).await;
                runs.count(&key, (0, u32::from(at + 1 == last)));
                Ok(Frame::data(part))
            }
        });
        Response::new(StreamBody::new(parts).boxed_unsync())
    }

    fn count(&self, key: &str, (begun, ended): (u32, u32)) {
        let mut runs = self.0.lock().unwrap();
        let counts = runs.entry(key.to_owned()).or_default();
        counts.0 += begun;
        counts.1 += ended;
    }

    /// Each of so many messages ran once, to its end.
    pub(crate) fn each_was_one(&self, messages: usize) {
        let runs = self.0.lock().unwrap();
        assert_eq!(runs.len(), messages);
        for (key, counts) in runs.iter() {
            assert_eq!(*counts, (1, 1), "{key}");
        }
    }

    pub(crate) fn forget(&self) {
        self.0.lock().unwrap().clear();
    }
}
