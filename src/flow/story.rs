//! The way of one request, top to bottom.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{HeaderValue, Request, Response};
use http_body::Body;
use tower_service::Service;

use crate::body::read::{Read, length};
use crate::body::request::RequestBody;
use crate::body::response::ResponseBody;
use crate::channel::contract::{Channel, Refusal};
use crate::claimed::Claimed;
use crate::counts::Told;
use crate::delivery::Delivery;
use crate::detach::Attendance;
use crate::error::BoxError;
use crate::flow::claim::{Decided, decide};
use crate::flow::conclude::conclude;
use crate::flow::context::Context;
use crate::flow::keep::keeping;
use crate::flow::reading::{Taken, take};
use crate::flow::run::{Inner, run};
use crate::key::Key;
use crate::pace::RETRY_SOON;
use crate::policy::Others;
use crate::problem::Problem;
use crate::store::contract::Store;
use crate::watch::span::say_messages;

/// Answers one request that concerns the channel: read, verify, name, claim, run, settle.
///
/// Safe to drop while `attendance` does not say that the rest must happen; else it goes on in a
/// task of its own.
pub(crate) async fn answer<S, C, Svc, B, R>(
    context: Arc<Context<S, C>>,
    service: Svc,
    request: Request<B>,
    attendance: Arc<Attendance>,
) -> Result<Response<ResponseBody<R>>, Svc::Error>
where
    S: Store,
    C: Channel,
    Svc: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send,
    Svc::Future: Send,
    Svc::Error: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    let (head, body) = request.into_parts();
    let asked = context.asked(&head);

    // Read.
    let read = match take(&context, &asked, &head, body).await {
        Taken::Whole(read) => read,
        Taken::Refused(problem) => return Ok(context.refused(&asked, &problem)),
        Taken::Streaming(begun) => {
            // What was read is all that can be verified: a signature over the body refuses it.
            if let Err(refusal) = context.channel.verify(&head, &begun.first) {
                return Ok(context.refused(&asked, &Problem::refused(&refusal)));
            }
            context
                .counters
                .tell(&asked.terms.channel, Told::Unprotected);
            let request = Request::from_parts(head, RequestBody::begun(begun));
            return Box::pin(Inner::ready(service).pass(request)).await;
        }
    };

    // Verify and name.
    let mut inner = Inner::ready(service);
    let deliveries = match named(&context, &head, &read.data) {
        Ok(deliveries) => deliveries,
        Err(refusal) => return Ok(context.refused(&asked, &Problem::refused(&refusal))),
    };
    let deliveries = match undecided(&context, &head, deliveries) {
        Ok(deliveries) => deliveries,
        Err(told) => {
            context.counters.tell(&asked.terms.channel, told);
            return Box::pin(inner.pass(request_of(head, read))).await;
        }
    };
    if context.detached.len() >= context.options.max_detached {
        context
            .counters
            .tell(&asked.terms.channel, Told::Overloaded);
        return Ok(asked.problem(&Problem::overloaded(RETRY_SOON)));
    }

    // Claim.
    let wanted = context.wanted(asked.terms, (&head, &read.data), &deliveries);
    let decided = decide(
        (&context, &asked),
        (wanted, &deliveries),
        &attendance,
        || inner.cool(),
    );
    let granted = match decided.await {
        Decided::Answer(response) => return Ok(response),
        Decided::Unprotected => return Box::pin(inner.pass(request_of(head, read))).await,
        Decided::Run(granted) => granted,
    };

    // Run and settle: boxed, so that a request that is only answered stays small.
    let claimed = granted.claimed(granted.loan(&context.store), deliveries);
    let request = protected_request(&context, (head, read), &claimed);
    let (context, asked) = (&context, &asked);
    Box::pin(async move {
        let head = || granted.head(&claimed);
        let run = run((context, asked), inner, request, head);
        let produced = keeping(context, || granted.holds(), run).await;
        conclude((context, asked), granted, claimed, produced).await
    })
    .await
}

/// The messages of a request, once its sender is verified.
pub(crate) fn named<S, C: Channel>(
    context: &Context<S, C>,
    head: &Parts,
    body: &[u8],
) -> Result<Vec<Delivery>, Refusal> {
    context.channel.verify(head, body)?;
    let deliveries = each_once(context.channel.deliveries(head, body)?);
    say_messages(&deliveries, context.options.keys);
    Ok(deliveries)
}

/// A message that a request names twice is one message, and must not wait for itself.
fn each_once(mut deliveries: Vec<Delivery>) -> Vec<Delivery> {
    if deliveries.len() > 1 {
        let mut seen = HashSet::with_capacity(deliveries.len());
        deliveries.retain(|delivery| seen.insert(delivery.key().clone()));
    }
    deliveries
}

/// The messages about which no layer in front has decided, or why the request is let pass. One that
/// meets the same layer twice would wait for itself.
pub(crate) fn undecided<S, C>(
    context: &Context<S, C>,
    head: &Parts,
    mut deliveries: Vec<Delivery>,
) -> Result<Vec<Delivery>, Told> {
    if deliveries.is_empty() {
        return Err(Told::WithoutKey);
    }
    let Some(claimed) = head.extensions.get::<Claimed>() else {
        return Ok(deliveries);
    };
    let all = deliveries.len();
    deliveries.retain(|delivery| !claimed.decided(delivery.key()));
    if deliveries.len() < all {
        context.said.nested.call_once(|| {
            tracing::warn!(
                "misconfigured: a layer is mounted within another one that knows the same \
                 messages; it lets them pass, for the outer one protects them"
            );
        });
    }
    if deliveries.is_empty() {
        return Err(Told::Nested);
    }
    Ok(deliveries)
}

/// The request as it came, its body read.
fn request_of<B>(head: Parts, read: Read) -> Request<RequestBody<B>> {
    Request::from_parts(head, RequestBody::read(read))
}

/// The request as the handler of its unfinished messages gets it.
fn protected_request<S, C: Channel, B>(
    context: &Context<S, C>,
    (mut head, mut read): (Parts, Read),
    claimed: &Claimed,
) -> Request<RequestBody<B>> {
    let others: Vec<&Key> = claimed.others().iter().collect();
    if context.options.others == Others::CutOut
        && !others.is_empty()
        && let Some(rest) = context.channel.without(&head, &read.data, &others)
    {
        if head.headers.contains_key(CONTENT_LENGTH) {
            head.headers
                .insert(CONTENT_LENGTH, HeaderValue::from(length(&rest)));
        }
        read.data = rest;
    }
    head.extensions.insert(claimed.clone());
    request_of(head, read)
}
