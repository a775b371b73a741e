//! A record or a refusal becomes a response.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Response, StatusCode};
use serde_json::json;

use crate::body::response::ResponseBody;
use crate::channel::contract::Ack;
use crate::policy::{GRPC_STATUS, Protocol};
use crate::problem::Problem;
use crate::record::{Record, Whole};

/// Marks a response that was replayed, or given for a message that was done before.
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

const TRUE: HeaderValue = HeaderValue::from_static("true");

/// The response to a repeat of a message whose record was kept whole.
pub(crate) fn replay<B>(record: &Record, whole: &Whole) -> Response<ResponseBody<B>> {
    let mut headers = record.headers().clone();
    headers.insert(REPLAYED, TRUE);
    response(record.status(), headers, ResponseBody::whole(whole.clone()))
}

/// The response by which the channel's sender knows that its messages were received.
pub(crate) fn ack<B>(ack: &Ack) -> Response<ResponseBody<B>> {
    let mut headers = HeaderMap::new();
    if let Some(content_type) = &ack.content_type {
        headers.insert(CONTENT_TYPE, content_type.clone());
    }
    response(ack.status, headers, body_of(ack.body.clone()))
}

/// The same, for messages that were received before.
pub(crate) fn repeated_ack<B>(terms_ack: &Ack) -> Response<ResponseBody<B>> {
    let mut response = ack(terms_ack);
    response.headers_mut().insert(REPLAYED, TRUE);
    response
}

/// A problem document (RFC 9457), or a gRPC status for a caller that speaks gRPC.
pub(crate) fn problem<B>(protocol: Protocol, problem: &Problem) -> Response<ResponseBody<B>> {
    match protocol {
        Protocol::Http => problem_document(problem),
        Protocol::Grpc => grpc_status("application/grpc", problem),
        Protocol::GrpcWeb => grpc_status("application/grpc-web", problem),
    }
}

fn problem_document<B>(problem: &Problem) -> Response<ResponseBody<B>> {
    let mut headers = HeaderMap::new();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    if let Some(time) = problem.retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds(time)));
    }
    let document = json!({
        "type": format!("urn:tower-idempotency:{}", problem.kind.code),
        "title": problem.kind.title,
        "status": problem.kind.status.as_u16(),
        "detail": problem.detail,
    });
    let body = body_of(document.to_string().into());
    response(problem.kind.status, headers, body)
}

/// Trailers-only, which is what every gRPC client takes for a refusal:
/// <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>.
fn grpc_status<B>(content_type: &'static str, problem: &Problem) -> Response<ResponseBody<B>> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(GRPC_STATUS, HeaderValue::from(problem.kind.grpc));
    if let Ok(message) = percent_encoded(&problem.detail).parse() {
        headers.insert("grpc-message", message);
    }
    if let Some(time) = problem.retry_after {
        let pushback = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        headers.insert("grpc-retry-pushback-ms", HeaderValue::from(pushback));
    }
    response(StatusCode::OK, headers, ResponseBody::default())
}

fn percent_encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'%' => Cow::Borrowed("%25"),
            b' '..=b'~' => char::from(byte).to_string().into(),
            _ => format!("%{byte:02X}").into(),
        })
        .collect()
}

/// Whole seconds, rounded up, at least one: `Retry-After: 0` invites a storm.
fn seconds(time: Duration) -> u64 {
    time.as_millis()
        .div_ceil(1000)
        .max(1)
        .try_into()
        .unwrap_or(u64::MAX)
}

fn body_of<B>(data: Bytes) -> ResponseBody<B> {
    ResponseBody::whole(Whole {
        frames: if data.is_empty() {
            Vec::new()
        } else {
            vec![data]
        },
        trailers: None,
        sized: true,
    })
}

fn response<B>(
    status: StatusCode,
    headers: HeaderMap,
    body: ResponseBody<B>,
) -> Response<ResponseBody<B>> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}
