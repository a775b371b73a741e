//! The run: the inner service is called while its leases are kept.

use std::any::Any;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::Poll;

use bytes::Bytes;
use futures_util::FutureExt;
use http::header::CONTENT_LENGTH;
use http::response::Parts;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use crate::body::request::RequestBody;
use crate::body::response::ResponseBody;
use crate::channel::contract::Channel;
use crate::counts::Told;
use crate::error::BoxError;
use crate::flow::context::{Asked, Context};
use crate::policy::{Disposition, EAGER, Head, Options, Outcome};
use crate::record::Whole;
use crate::store::contract::Store;

/// What a run came to.
#[expect(
    clippy::large_enum_variant,
    reason = "the large variant is the common one"
)]
pub(crate) enum Produced<R, E> {
    /// An answer. Its outcome is open as long as only its trailers can tell.
    Answer {
        parts: Parts,
        outcome: Option<Outcome>,
        body: Collected<R>,
    },
    /// The inner service's error.
    Failed(E),
    /// The inner service's panic.
    Panicked(Box<dyn Any + Send>),
}

/// As much of an answer's body as was read before its head goes out.
pub(crate) enum Collected<R> {
    /// Nothing of it: it is not recorded.
    Untouched(R),
    /// All of it.
    Whole(Whole),
    /// More than is kept.
    TooLarge(Vec<Bytes>, Pin<Box<R>>),
    /// What was ready; the rest takes its time.
    Streaming(Vec<Bytes>, Pin<Box<R>>),
    /// It broke before its end.
    Broken(BoxError),
}

/// The inner service, and whether it was polled ready.
#[derive(Debug)]
pub(crate) struct Inner<Svc> {
    service: Svc,
    is_ready: bool,
}

impl<Svc: Clone> Inner<Svc> {
    /// The service that was polled ready.
    pub(crate) fn ready(service: Svc) -> Self {
        Self {
            service,
            is_ready: true,
        }
    }

    /// A service that is polled ready when it is called.
    pub(crate) fn cold(service: Svc) -> Self {
        Self {
            service,
            is_ready: false,
        }
    }

    /// Gives its readiness back, so that a request that only waits takes nobody's place.
    pub(crate) fn cool(&mut self) {
        if self.is_ready {
            self.service = self.service.clone();
            self.is_ready = false;
        }
    }

    /// Calls the service; it is polled ready first if need be.
    pub(crate) async fn call<B, R>(mut self, request: Request<B>) -> Result<Response<R>, Svc::Error>
    where
        Svc: Service<Request<B>, Response = Response<R>>,
    {
        if !self.is_ready {
            poll_fn(|cx| self.service.poll_ready(cx)).await?;
        }
        self.service.call(request).await
    }

    /// Calls the service without a claim.
    pub(crate) async fn pass<B, R>(
        self,
        request: Request<B>,
    ) -> Result<Response<ResponseBody<R>>, Svc::Error>
    where
        Svc: Service<Request<B>, Response = Response<R>>,
    {
        let response = self.call(request).await?;
        Ok(response.map(ResponseBody::passed))
    }
}

/// Calls the inner service and reads its answer, as far as it is read before its head goes out.
/// A panic of either is caught, so that the leases can be settled.
pub(crate) async fn run<S, C, Svc, B, R>(
    (context, asked): (&Context<S, C>, &Asked<'_>),
    inner: Inner<Svc>,
    request: Request<RequestBody<B>>,
    head: impl Fn() -> Head + Send + Sync,
) -> Produced<R, Svc::Error>
where
    S: Store,
    C: Channel,
    Svc: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send,
    Svc::Future: Send,
    Svc::Error: Send,
    B: Send,
    R: Body<Data = Bytes> + Send,
    R::Error: Into<BoxError>,
{
    let channel = &asked.terms.channel;
    context.counters.tell(channel, Told::Run);
    let produce = async {
        match inner.call(request).await {
            Ok(response) => read_answer(&context.options, asked, response, head()).await,
            Err(error) => Produced::Failed(error),
        }
    };
    match AssertUnwindSafe(produce).catch_unwind().await {
        Ok(produced) => produced,
        Err(panic) => Produced::Panicked(panic),
    }
}

async fn read_answer<R, E>(
    options: &Options,
    asked: &Asked<'_>,
    response: Response<R>,
    head: Head,
) -> Produced<R, E>
where
    R: Body<Data = Bytes>,
    R::Error: Into<BoxError>,
{
    let (mut parts, body) = response.into_parts();
    let disposition = parts.extensions.remove::<Disposition>();
    let seen = (parts.status, &parts.headers, disposition);
    let mut outcome = asked.ends.at_head(options, asked.protocol, seen);
    let body = if matches!(outcome, Some(Outcome::Release | Outcome::Unknown)) {
        Collected::Untouched(body)
    } else {
        let announced =
            body.size_hint().exact().is_some() || parts.headers.contains_key(CONTENT_LENGTH);
        let until = if announced || head == Head::WaitsForTheEnd {
            Until::TheEnd
        } else {
            Until::Pending
        };
        collect(body, announced, until, options.max_response).await
    };
    if let (None, Collected::Whole(whole)) = (outcome, &body) {
        outcome = Some(asked.ends.at_end(whole.trailers.as_ref()));
    }
    Produced::Answer {
        parts,
        outcome,
        body,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    TheEnd,
    Pending,
}

/// Reads a body to its end, or as far as it is ready, and not beyond `most` bytes.
async fn collect<R>(body: R, sized: bool, until: Until, most: usize) -> Collected<R>
where
    R: Body<Data = Bytes>,
    R::Error: Into<BoxError>,
{
    let too_much = u64::try_from(most).unwrap_or(u64::MAX);
    let mut body = Box::pin(body);
    if body.size_hint().lower() > too_much {
        return Collected::TooLarge(Vec::new(), body);
    }
    let mut whole = Whole {
        sized,
        ..Whole::default()
    };
    let mut read = 0;
    loop {
        let polled = poll_fn(|cx| match (body.as_mut().poll_frame(cx), until) {
            (Poll::Pending, Until::TheEnd) => Poll::Pending,
            (polled, Until::TheEnd | Until::Pending) => Poll::Ready(polled),
        });
        let frame = match polled.await {
            Poll::Pending => return Collected::Streaming(whole.frames, body),
            Poll::Ready(None) => return Collected::Whole(whole),
            Poll::Ready(Some(Err(error))) => return Collected::Broken(error.into()),
            Poll::Ready(Some(Ok(frame))) => frame,
        };
        match frame.into_data() {
            Ok(data) => {
                read += data.len();
                whole.frames.push(data);
            }
            Err(frame) => whole.trailers = frame.into_trailers().ok().or(whole.trailers),
        }
        if read > most {
            return Collected::TooLarge(whole.frames, body);
        }
        if until == Until::Pending && read > EAGER && whole.trailers.is_none() {
            return Collected::Streaming(whole.frames, body);
        }
    }
}
