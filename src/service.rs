//! The service that stands before the inner one.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_service::Service;
use tracing::Instrument;

use crate::body::request::RequestBody;
use crate::body::response::ResponseBody;
use crate::channel::contract::{Channel, Concern};
use crate::detach::{Attendance, Staying};
use crate::error::BoxError;
use crate::flow::context::Context;
use crate::flow::observe::{Watcher, observe};
use crate::flow::story::answer;
use crate::store::contract::Store;
use crate::watch::span::span;

/// Runs every message once: made by [`IdempotencyLayer`](crate::IdempotencyLayer).
///
/// Ready when the inner service is, so that a claim is only made by a request that can run.
/// A request that waits for another's run gives its place in the inner service back.
pub struct Idempotency<Svc, S, C> {
    inner: Svc,
    context: Arc<Context<S, C>>,
}

impl<Svc, S, C> Idempotency<Svc, S, C> {
    pub(crate) fn new(inner: Svc, context: Arc<Context<S, C>>) -> Self {
        Self { inner, context }
    }
}

impl<Svc: Clone, S, C> Idempotency<Svc, S, C> {
    /// The service that was polled ready; a clone takes its place and is polled anew.
    fn take_ready(&mut self) -> Svc {
        let clone = self.inner.clone();
        std::mem::replace(&mut self.inner, clone)
    }
}

impl<Svc, S, C, B, R> Service<Request<B>> for Idempotency<Svc, S, C>
where
    Svc: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    Svc::Future: Send,
    Svc::Error: Send,
    S: Store,
    C: Channel,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    type Response = Response<ResponseBody<R>>;
    type Error = Svc::Error;
    type Future = ResponseFuture<Svc::Future, R, Svc::Error>;

    fn poll_ready(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<(), Svc::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (head, body) = request.into_parts();
        let lane = match self.context.concern(&head) {
            Ok(Concern::Read) if self.context.observes() => {
                let request = Request::from_parts(head, body);
                let (request, watcher) = observe(&self.context, request);
                Lane::Observed {
                    inner: self.inner.call(request),
                    watcher,
                }
            }
            Ok(Concern::Read) => {
                let request = Request::from_parts(head, body);
                Lane::Guarded {
                    rest: self.guarded(request),
                }
            }
            Ok(Concern::Pass | Concern::NoKey) => {
                let request = Request::from_parts(head, RequestBody::passed(body));
                Lane::Pass {
                    inner: self.inner.call(request),
                }
            }
            Err(_) if self.context.observes() => {
                self.context.would_refuse(&head);
                let request = Request::from_parts(head, RequestBody::passed(body));
                Lane::Pass {
                    inner: self.inner.call(request),
                }
            }
            Err(refusal) => Lane::Refused {
                response: Some(self.context.refuse(&head, body, &refusal)),
            },
        };
        ResponseFuture { lane }
    }
}

impl<Svc, S, C> Idempotency<Svc, S, C> {
    fn guarded<B, R>(
        &mut self,
        request: Request<B>,
    ) -> Staying<Result<Response<ResponseBody<R>>, Svc::Error>>
    where
        Svc: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send + 'static,
        Svc::Future: Send,
        Svc::Error: Send,
        S: Store,
        C: Channel,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
        R: Body<Data = Bytes> + Send + 'static,
        R::Error: Into<BoxError>,
    {
        let inner = self.take_ready();
        let context = Arc::clone(&self.context);
        let attendance = Arc::<Attendance>::default();
        let shared = (Arc::clone(&context.detached), Arc::clone(&context.counters));
        let story = answer(context, inner, request, Arc::clone(&attendance));
        Staying::new(Box::pin(story.instrument(span())), attendance, shared)
    }
}

impl<Svc: Clone, S, C> Clone for Idempotency<Svc, S, C> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            context: Arc::clone(&self.context),
        }
    }
}

impl<Svc: fmt::Debug, S, C> fmt::Debug for Idempotency<Svc, S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotency")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

pin_project! {
    /// The answer to come. Dropped after its claim was sent, the run goes on in a task of its
    /// own and is recorded.
    pub struct ResponseFuture<F, R, E>
    where
        R: Send,
        R: 'static,
        E: Send,
        E: 'static,
    {
        #[pin]
        lane: Lane<F, R, E>,
    }
}

pin_project! {
    #[project = LaneProjection]
    enum Lane<F, R, E>
    where
        R: Send,
        R: 'static,
        E: Send,
        E: 'static,
    {
        Pass { #[pin] inner: F },
        Observed { #[pin] inner: F, watcher: Option<Watcher> },
        Guarded { #[pin] rest: Staying<Result<Response<ResponseBody<R>>, E>> },
        Refused { response: Option<Response<ResponseBody<R>>> },
    }
}

impl<F, R: Send + 'static, E: Send + 'static> ResponseFuture<F, R, E> {
    /// An answer that takes its time.
    pub(crate) fn guarded(rest: Staying<Result<Response<ResponseBody<R>>, E>>) -> Self {
        Self {
            lane: Lane::Guarded { rest },
        }
    }

    /// An answer that is known.
    pub(crate) fn refused(response: Response<ResponseBody<R>>) -> Self {
        Self {
            lane: Lane::Refused {
                response: Some(response),
            },
        }
    }
}

impl<F, R, E> Future for ResponseFuture<F, R, E>
where
    F: Future<Output = Result<Response<R>, E>>,
    R: Body<Data = Bytes> + Send + 'static,
    E: Send + 'static,
{
    type Output = Result<Response<ResponseBody<R>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        match self.project().lane.project() {
            LaneProjection::Pass { inner } => {
                let response = ready!(inner.poll(cx))?;
                Poll::Ready(Ok(response.map(ResponseBody::passed)))
            }
            LaneProjection::Observed { inner, watcher } => {
                let answer = ready!(inner.poll(cx));
                // An error drops the watcher, who knows then.
                let watcher = watcher.take();
                Poll::Ready(answer.map(|response| match watcher {
                    Some(watcher) => watcher.pass(response),
                    None => response.map(ResponseBody::passed),
                }))
            }
            LaneProjection::Guarded { rest } => rest.poll(cx),
            LaneProjection::Refused { response } => match response.take() {
                Some(response) => Poll::Ready(Ok(response)),
                None => Poll::Pending,
            },
        }
    }
}

impl<F, R: Send + 'static, E: Send + 'static> fmt::Debug for ResponseFuture<F, R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
