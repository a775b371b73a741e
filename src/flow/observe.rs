//! A layer that only looks: the request passes as it came, and beside it happens what would have.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::Full;
use tokio::sync::oneshot::{Receiver, Sender, channel};
use tokio::time::timeout;
use tracing::Instrument;

use crate::body::request::RequestBody;
use crate::body::response::ResponseBody;
use crate::body::tap::{Beyond, Copied, Tap};
use crate::channel::contract::Channel;
use crate::counts::Told;
use crate::delivery::Delivery;
use crate::detach::Attendance;
use crate::flow::claim::{Decided, decide};
use crate::flow::context::{Asked, Context};
use crate::flow::ending::{Ended, Ending};
use crate::flow::granted::Granted;
use crate::flow::keep::keeping;
use crate::flow::reading::{Taken, take};
use crate::flow::recording::{too_large_record, whole_record};
use crate::flow::story::{named, undecided};
use crate::policy::{Disposition, OnStreamingCall, Outcome, Protocol};
use crate::store::contract::Store;
use crate::watch::span::span;

/// Looks at the answer that the handler gives.
#[derive(Debug)]
pub(crate) struct Watcher {
    most: usize,
    beyond: Beyond,
    to: Sender<Answered>,
}

/// An answer on its way to the caller.
#[derive(Debug)]
struct Answered {
    status: StatusCode,
    headers: HeaderMap,
    disposition: Option<Disposition>,
    body: Receiver<Copied>,
}

impl Watcher {
    /// Passes an answer on as it is; its body is copied as it goes.
    pub(crate) fn pass<R: Body<Data = Bytes>>(
        self,
        response: Response<R>,
    ) -> Response<ResponseBody<R>> {
        let (parts, body) = response.into_parts();
        let (mut tap, copied) = Tap::new(self.most, self.beyond);
        tap.begin(declared(&parts.headers, &body), body.is_end_stream());
        let answered = Answered {
            status: parts.status,
            headers: parts.headers.clone(),
            disposition: parts.extensions.get().copied(),
            body: copied,
        };
        // Nobody listens if it was known before that there is nothing to see.
        self.to.send(answered).ok();
        Response::from_parts(parts, ResponseBody::tapped(body, tap))
    }
}

fn declared(headers: &HeaderMap, body: &impl Body) -> Option<u64> {
    let length = headers.get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    body.size_hint().exact().or(length)
}

/// The request as the handler gets it, and who looks at its answer.
pub(crate) fn observe<S, C, B>(
    context: &Arc<Context<S, C>>,
    request: Request<B>,
) -> (Request<RequestBody<B>>, Option<Watcher>)
where
    S: Store,
    C: Channel,
    B: Body<Data = Bytes>,
{
    let (head, body) = request.into_parts();
    let asked = context.asked(&head);
    if context.detached.len() >= context.options.max_detached {
        context
            .counters
            .tell(&asked.terms.channel, Told::Overloaded);
        return (Request::from_parts(head, RequestBody::passed(body)), None);
    }
    let (tap, copied) = Tap::new(context.options.max_request, Beyond::GiveUp);
    let (to, answered) = channel();
    let beside = watch(Arc::clone(context), head.clone(), copied, answered);
    let watcher = context.detached.beside(beside.instrument(span()));
    let watcher = watcher.then_some(Watcher {
        most: context.options.max_response,
        beyond: match asked.protocol {
            // Only its trailers tell how it ended.
            Protocol::Grpc => Beyond::ToTheEnd,
            Protocol::Http | Protocol::GrpcWeb => Beyond::GiveUp,
        },
        to,
    });
    (
        Request::from_parts(head, RequestBody::tapped(body, tap)),
        watcher,
    )
}

/// What would have become of a request: read, verify, name, claim, run, settle.
async fn watch<S: Store, C: Channel>(
    context: Arc<Context<S, C>>,
    head: Parts,
    copied: Receiver<Copied>,
    answered: Receiver<Answered>,
) {
    let asked = context.asked(&head);
    let tell = |told| context.counters.tell(&asked.terms.channel, told);

    // Read.
    let data = match timeout(context.options.read_limit, copied).await {
        Ok(Ok(Copied::Whole(whole))) => whole.frames.concat(),
        Ok(Ok(Copied::TooLarge(_) | Copied::Broken)) | Err(_) => return tell(Told::Refused),
        Ok(Err(_)) => return tell(Told::Unread),
    };
    let read = match take(&context, &asked, &head, Full::from(data)).await {
        Taken::Whole(read) => read,
        Taken::Refused(_) => return tell(Told::Refused),
        Taken::Streaming(_) => {
            return tell(match context.options.on_streaming_call {
                OnStreamingCall::Refuse => Told::Refused,
                OnStreamingCall::PassUnprotected => Told::Unprotected,
            });
        }
    };

    // Verify and name.
    let Ok(deliveries) = named(&context, &head, &read.data) else {
        return tell(Told::Refused);
    };
    let deliveries = match undecided(&context, &head, deliveries) {
        Ok(deliveries) => deliveries,
        Err(told) => return tell(told),
    };

    // Claim. The answer is for nobody.
    let wanted = context.wanted(asked.terms, (&head, &read.data), &deliveries);
    let here = Attendance::default();
    let decided = decide::<_, _, ()>((&context, &asked), (wanted, &deliveries), &here, || {});
    if let Decided::Run(granted) = decided.await {
        tell(Told::Run);
        run((&context, &asked), granted, deliveries, answered).await;
    }
}

/// Keeps the lease while the handler runs, and settles it as its answer says.
async fn run<S: Store, C: Channel>(
    (context, asked): (&Arc<Context<S, C>>, &Asked<'_>),
    granted: Granted,
    deliveries: Vec<Delivery>,
    answered: Receiver<Answered>,
) {
    let ended = ended((context, asked), answered);
    let ended = keeping(context, || granted.holds(), ended).await;
    let claimed = granted.claimed(None, deliveries);
    Ending::of(granted, claimed, asked)
        .settle(context, ended)
        .await;
}

/// How the handler's run ends. An error, a panic, a broken answer and a caller that left are no
/// success.
async fn ended<S: Store, C: Channel>(
    (context, asked): (&Context<S, C>, &Asked<'_>),
    answered: Receiver<Answered>,
) -> Ended {
    let options = &context.options;
    let Ok(answered) = answered.await else {
        return Ended::without_record(Outcome::Release);
    };
    let seen = (answered.status, &answered.headers, answered.disposition);
    let at_head = asked.ends.at_head(options, asked.protocol, seen);
    let Ok(copied) = answered.body.await else {
        return Ended::without_record(Outcome::Release);
    };
    if let Some(outcome @ (Outcome::Release | Outcome::Unknown)) = at_head {
        return Ended::without_record(outcome);
    }
    let mut parts = Response::new(()).into_parts().0;
    parts.status = answered.status;
    parts.headers = answered.headers;
    let (record, trailers) = match copied {
        Copied::Whole(whole) => (whole_record(options, &parts, &whole), whole.trailers),
        Copied::TooLarge(trailers) => (too_large_record(options, &parts), trailers),
        Copied::Broken => return Ended::without_record(asked.ends.unknown()),
    };
    Ended {
        outcome: at_head.unwrap_or_else(|| asked.ends.at_end(trailers.as_ref())),
        record: Some(Arc::new(record)),
    }
}
