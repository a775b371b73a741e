//! One route: the layer or an inbox in front of its upstream.

use std::sync::Mutex;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tower::{Layer, ServiceExt};
use tower_idempotency::channel::ByPath;
use tower_idempotency::inbox::{Front, Inbox, InboxCounts};
use tower_idempotency::store::BoxStore;
use tower_idempotency::{
    BoxError, Counts, Idempotency, IdempotencyLayer, Keep, RequestBody, ResponseBody,
};

use crate::check::{Mode, RouteSettings};
use crate::proxy::Proxy;

pub(crate) type Body = ResponseBody<Either<Incoming, Full<Bytes>>>;
type Upstream = Proxy<RequestBody<Incoming>>;

pub(crate) struct Route {
    pub(crate) path: String,
    kind: Kind,
}

/// When the sender is answered.
enum Kind {
    /// When the upstream has answered.
    InLine {
        layer: IdempotencyLayer<BoxStore, ByPath>,
        service: Idempotency<Upstream, BoxStore, ByPath>,
    },
    /// When the message is stored.
    AckFirst {
        front: Front<Upstream, BoxStore, ByPath, Incoming>,
        /// Until the gateway ends.
        worker: Mutex<Option<Worker>>,
    },
}

struct Worker {
    task: JoinHandle<()>,
    stop: oneshot::Sender<()>,
}

/// What a route did.
pub(crate) enum Told {
    InLine(Counts),
    AckFirst(InboxCounts),
}

impl Route {
    pub(crate) fn new(settings: RouteSettings, store: BoxStore) -> Result<Self, BoxError> {
        let path = settings.path.clone();
        let kind = match settings.mode {
            Mode::InLine => Kind::in_line(settings, store),
            Mode::AckFirst => Kind::ack_first(settings, store)
                .map_err(|e| BoxError::from(format!("the route {path}: {e}")))?,
        };
        Ok(Self { path, kind })
    }

    /// Whether a path is this route's or below it.
    pub(crate) fn matches(&self, path: &str) -> bool {
        match path.strip_prefix(&*self.path) {
            Some(rest) => self.path.ends_with('/') || rest.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }

    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let answer = match &self.kind {
            Kind::InLine { service, .. } => service.clone().oneshot(request).await,
            Kind::AckFirst { front, .. } => front.clone().oneshot(request).await,
        };
        match answer {
            Ok(answer) => answer,
            Err(never) => match never {},
        }
    }

    pub(crate) fn told(&self) -> Told {
        match &self.kind {
            Kind::InLine { layer, .. } => Told::InLine(layer.counts()),
            Kind::AckFirst { front, .. } => Told::AckFirst(front.counts()),
        }
    }

    /// Lets runs end until `end`; gives the number of those that still go on. What waits in an
    /// inbox waits for the next start.
    pub(crate) async fn drain(&self, end: Instant) -> usize {
        match &self.kind {
            Kind::InLine { layer, .. } => {
                let time = end.saturating_duration_since(Instant::now());
                layer.drain(time).await
            }
            Kind::AckFirst { worker, .. } => {
                let worker = worker.lock().ok().and_then(|mut worker| worker.take());
                let Some(Worker { task, stop }) = worker else {
                    return 0;
                };
                drop(stop);
                usize::from(timeout_at(end, task).await.is_err())
            }
        }
    }
}

impl Kind {
    fn in_line(settings: RouteSettings, store: BoxStore) -> Self {
        let mut layer = IdempotencyLayer::new(store, settings.channels);
        if let Some(keep) = settings.keep {
            layer = layer.keep(Keep::For(keep));
        }
        if let Some(wait) = settings.wait {
            layer = layer.wait(wait);
        }
        if let Some(bytes) = settings.max_request {
            layer = layer.max_request(bytes);
        }
        let upstream = Proxy::new(settings.upstream, settings.timeout);
        Self::InLine {
            service: layer.layer(upstream),
            layer,
        }
    }

    fn ack_first(settings: RouteSettings, store: BoxStore) -> Result<Self, BoxError> {
        let mut inbox = Inbox::new(store, settings.channels);
        if let Some(keep) = settings.keep {
            inbox = inbox.keep(Keep::For(keep));
        }
        if let Some(bytes) = settings.max_request {
            inbox = inbox.max_request(bytes);
        }
        if settings.reply_elsewhere {
            inbox = inbox.reply_elsewhere();
        }
        let upstream = Proxy::new(settings.upstream, settings.timeout);
        let (front, worker) = inbox.wrap(upstream)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(worker.run_until(async { drop(stopped.await) }));
        let worker = Mutex::new(Some(Worker { task, stop }));
        Ok(Self::AckFirst { front, worker })
    }
}
