//! The service that stands in the router.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;
use tracing::Instrument;

use crate::body::request::RequestBody;
use crate::body::response::ResponseBody;
use crate::channel::contract::{Channel, Concern};
use crate::detach::{Attendance, Staying};
use crate::error::BoxError;
use crate::flow::run::Inner;
use crate::inbox::counts::InboxCounts;
use crate::inbox::receive::receive;
use crate::inbox::shared::Shared;
use crate::service::ResponseFuture;
use crate::store::queue::contract::Queue;
use crate::watch::span::span;

/// Stores messages and acknowledges them: made by [`Inbox::wrap`](crate::inbox::Inbox::wrap), and
/// mounted in the application's router.
///
/// What carries no message passes to the handler as it came: handshakes, other methods and paths.
/// Always ready: a handler that is busy holds no acknowledgement up.
pub struct Front<Svc, Q, C, B> {
    pub(crate) service: Svc,
    pub(crate) shared: Arc<Shared<Q, C>>,
    pub(crate) body: PhantomData<fn() -> B>,
}

type Answer<R, E> = Result<Response<ResponseBody<R>>, E>;

impl<Svc, Q, C, B, R> Service<Request<B>> for Front<Svc, Q, C, B>
where
    Svc: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    Svc::Future: Send,
    Svc::Error: Send,
    Q: Queue,
    C: Channel,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    type Response = Response<ResponseBody<R>>;
    type Error = Svc::Error;
    type Future = ResponseFuture<Svc::Future, R, Svc::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Svc::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let context = &self.shared.context;
        let (head, body) = request.into_parts();
        let attendance = Arc::<Attendance>::default();
        match context.concern(&head) {
            Ok(Concern::Read) => {
                let request = Request::from_parts(head, body);
                let (shared, service) = (Arc::clone(&self.shared), self.service.clone());
                let story = receive(shared, service, request, Arc::clone(&attendance));
                self.staying(Box::pin(story.instrument(span())), attendance)
            }
            Ok(Concern::Pass | Concern::NoKey) => {
                let request = Request::from_parts(head, RequestBody::passed(body));
                let pass = Inner::cold(self.service.clone()).pass(request);
                self.staying(Box::pin(pass), attendance)
            }
            Err(refusal) => ResponseFuture::refused(context.refuse(&head, body, &refusal)),
        }
    }
}

impl<Svc, Q: Queue, C: Channel, B> Front<Svc, Q, C, B> {
    /// What this inbox did in this process until now, its worker included.
    pub fn counts(&self) -> InboxCounts {
        self.shared.counts()
    }

    fn staying<F, R, E>(
        &self,
        answer: Pin<Box<dyn Future<Output = Answer<R, E>> + Send>>,
        attendance: Arc<Attendance>,
    ) -> ResponseFuture<F, R, E>
    where
        R: Send + 'static,
        E: Send + 'static,
    {
        let context = &self.shared.context;
        let kept = (Arc::clone(&context.detached), Arc::clone(&context.counters));
        ResponseFuture::guarded(Staying::new(answer, attendance, kept))
    }
}

impl<Svc: Clone, Q, C, B> Clone for Front<Svc, Q, C, B> {
    fn clone(&self) -> Self {
        Self {
            service: self.service.clone(),
            shared: Arc::clone(&self.shared),
            body: PhantomData,
        }
    }
}

impl<Svc, Q, C, B> fmt::Debug for Front<Svc, Q, C, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Front").finish_non_exhaustive()
    }
}
