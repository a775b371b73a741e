//! One attempt at one message: the handler is called.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use http::{Request, Response};
use http_body::Body;
use http_body_util::BodyExt;
use time::OffsetDateTime;
use tokio::time::timeout;
use tower_service::Service;

use crate::body::read::Read;
use crate::body::request::RequestBody;
use crate::claimed::{By, Claimed, Message};
use crate::error::{BoxError, Error};
use crate::flow::run::Inner;
use crate::inbox::decide::{Came, Plan, came};
use crate::inbox::failure::Failure;
use crate::inbox::raw::RawRequest;
use crate::inbox::received::Received;
use crate::policy::Disposition;
use crate::store::loan::Loan;
use crate::store::queue::turn::{TurnHold, Waiting};
use crate::watch::shown::KeysInLogs;
use crate::watch::span::{say_attempt, say_channel, say_messages};

/// Calls the handler for a message, within the time limit, and reads its answer to the end.
///
/// A panic, an error, a broken answer and one that takes too long are failures. Gives what the
/// handler was told as well, with what it borrowed. Dropping the future drops the handler's.
pub(crate) async fn attempt<Svc, B, R>(
    (plan, keys): (&Plan, KeysInLogs),
    service: Svc,
    (hold, loan): (TurnHold, Option<Arc<dyn Loan>>),
    message: &Waiting,
) -> (Came, Option<Claimed>)
where
    Svc: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send,
    Svc::Future: Send,
    Svc::Error: Into<BoxError> + Send,
    B: Send,
    R: Body<Data = Bytes> + Send,
    R::Error: Into<BoxError>,
{
    let (request, claimed) = match request((hold, loan), message) {
        Ok(request) => request,
        // No later attempt can read it either.
        Err(error) => return (refused(format!("could not be read: {error}")), None),
    };
    if let Some(message) = claimed.messages().first() {
        say_channel(message.key().channel());
        say_messages(std::slice::from_ref(message.delivery()), keys);
    }
    say_attempt(Some(message.attempt));
    let run = AssertUnwindSafe(call(plan, service, (request, &claimed))).catch_unwind();
    let came = match timeout(plan.attempt_limit, run).await {
        Ok(Ok(came)) => came,
        Ok(Err(panic)) => failed(format!("panicked: {}", text_of(&*panic))),
        Err(_) => failed(format!("did not end within {:?}", plan.attempt_limit)),
    };
    (came, Some(claimed))
}

/// The request as it came, with what the handler is told about its message.
fn request<B>(
    (hold, loan): (TurnHold, Option<Arc<dyn Loan>>),
    message: &Waiting,
) -> Result<(Request<RequestBody<B>>, Claimed), Error> {
    let RawRequest {
        delivery,
        is_verified,
        mut head,
        body,
    } = RawRequest::read(&message.raw)?;
    let under = Message::under(delivery.clone(), hold.token, message.attempt);
    let claimed = Claimed::new(By::Inbox, vec![under], Vec::new(), loan);
    head.extensions.insert(claimed.clone());
    head.extensions.insert(Received {
        delivery,
        attempt: message.attempt,
        at: message.received_at,
        is_verified,
    });
    let read = Read {
        data: body,
        trailers: None,
        announced: true,
    };
    Ok((Request::from_parts(head, RequestBody::read(read)), claimed))
}

async fn call<Svc, B, R>(
    plan: &Plan,
    service: Svc,
    (request, claimed): (Request<RequestBody<B>>, &Claimed),
) -> Came
where
    Svc: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send,
    Svc::Future: Send,
    Svc::Error: Into<BoxError> + Send,
    B: Send,
    R: Body<Data = Bytes> + Send,
    R::Error: Into<BoxError>,
{
    let (mut parts, body) = match Inner::cold(service).call(request).await {
        Ok(response) => response.into_parts(),
        Err(error) => return failed(format!("failed: {}", chain(&*error.into()))),
    };
    let failure = parts.extensions.remove::<Failure>();
    let answered = parts.extensions.remove::<Disposition>();
    let said = (failure, claimed.said(0).or(answered));
    let text = match read_to_end(body).await {
        Ok(text) => text,
        Err(error) => return failed(format!("broke off its answer: {}", chain(&*error))),
    };
    let now = OffsetDateTime::now_utc();
    match came(plan, (parts.status, &parts.headers), said, now) {
        Came::Handled => Came::Handled,
        Came::Failed { again, fault } => Came::Failed {
            again,
            fault: fault + &text,
        },
        Came::Refused { fault } => refused(fault + &text),
    }
}

/// Reads an answer to its end, since some handlers work while theirs is read; gives its beginning.
async fn read_to_end<R>(body: R) -> Result<String, BoxError>
where
    R: Body<Data = Bytes> + Send,
    R::Error: Into<BoxError>,
{
    let mut body = pin!(body);
    let mut begin = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(Into::into)?.into_data() {
            let room = MOST_TEXT.saturating_sub(begin.len()).min(data.len());
            begin.extend_from_slice(data.get(..room).unwrap_or_default());
        }
    }
    if begin.is_empty() {
        return Ok(String::new());
    }
    Ok(format!(": {}", String::from_utf8_lossy(&begin)))
}

/// How many bytes of an answer are kept with a failure.
const MOST_TEXT: usize = 512;

pub(crate) fn failed(fault: String) -> Came {
    Came::Failed { again: None, fault }
}

fn refused(fault: String) -> Came {
    Came::Refused { fault }
}

/// An error with its causes.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a text")
}
