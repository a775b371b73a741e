//! A record or a refusal becomes a response.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Response, StatusCode};
use serde_json::json;

use crate::body::response::ResponseBody;
use crate::channel::contract::{Ack, Reason, Refusal};
use crate::fingerprint::Part;
use crate::policy::{GRPC_STATUS, Protocol};
use crate::record::{Record, Whole};

/// Marks a response that was replayed, or given for a message that was done before.
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

const TRUE: HeaderValue = HeaderValue::from_static("true");

/// Why a request with a key is not answered by its handler or a record.
#[derive(Clone, Debug)]
pub(crate) enum Problem {
    Refused(Refusal),
    TooLarge {
        limit: usize,
    },
    BodyCut,
    /// Told to clients that make their own key.
    StillRunning {
        retry_after: Duration,
    },
    /// Told to webhook senders.
    NotYetDone {
        retry_after: Duration,
    },
    KeyReused {
        part: Part,
    },
    ResponseNotKept,
    StoreUnavailable {
        retry_after: Duration,
    },
    Unconfirmed {
        retry_after: Duration,
    },
    Superseded {
        retry_after: Duration,
    },
    Overloaded {
        retry_after: Duration,
    },
    ResponseBroken,
}

/// A problem in the words of each protocol.
struct Wording {
    status: StatusCode,
    /// Canonical gRPC code, <https://grpc.io/docs/guides/status-codes/>.
    grpc: u8,
    code: &'static str,
    title: &'static str,
    detail: String,
    retry_after: Option<Duration>,
}

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
    headers.insert(REPLAYED, TRUE);
    response(ack.status, headers, body_of(ack.body.clone()))
}

/// A problem document (RFC 9457), or a gRPC status for a caller that speaks gRPC.
pub(crate) fn problem<B>(protocol: Protocol, problem: &Problem) -> Response<ResponseBody<B>> {
    let wording = wording(problem);
    match protocol {
        Protocol::Http => problem_document(&wording),
        Protocol::Grpc => grpc_status(&wording),
    }
}

fn problem_document<B>(wording: &Wording) -> Response<ResponseBody<B>> {
    let mut headers = HeaderMap::new();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    if let Some(time) = wording.retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds(time)));
    }
    let document = json!({
        "type": format!("urn:tower-idempotency:{}", wording.code),
        "title": wording.title,
        "status": wording.status.as_u16(),
        "detail": wording.detail,
    });
    let body = body_of(document.to_string().into());
    response(wording.status, headers, body)
}

/// Trailers-only, which is what every gRPC client takes for a refusal:
/// <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>.
fn grpc_status<B>(wording: &Wording) -> Response<ResponseBody<B>> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(GRPC_STATUS, HeaderValue::from(u16::from(wording.grpc)));
    if let Ok(message) = percent_encoded(&wording.detail).parse() {
        headers.insert("grpc-message", message);
    }
    if let Some(time) = wording.retry_after {
        let pushback = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        headers.insert("grpc-retry-pushback-ms", HeaderValue::from(pushback));
    }
    response(StatusCode::OK, headers, ResponseBody::default())
}

fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        match byte {
            b'%' => out.push_str("%25"),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
        out
    })
}

fn wording(problem: &Problem) -> Wording {
    let say = |status, grpc, code, title, detail: &str, retry_after| Wording {
        status,
        grpc,
        code,
        title,
        detail: detail.to_owned(),
        retry_after,
    };
    const ABORTED: u8 = 10;
    const UNAVAILABLE: u8 = 14;
    const INVALID: u8 = 3;
    let unavailable = StatusCode::SERVICE_UNAVAILABLE;
    match problem {
        Problem::Refused(refusal) => refused(refusal),
        Problem::TooLarge { limit } => Wording {
            status: StatusCode::PAYLOAD_TOO_LARGE,
            grpc: 8,
            code: "request-too-large",
            title: "The request body is too large",
            detail: format!("The body is over {limit} bytes; nothing was run."),
            retry_after: None,
        },
        Problem::BodyCut => say(
            StatusCode::BAD_REQUEST,
            INVALID,
            "body-cut",
            "The request body is incomplete",
            "The body ended early or has another length than declared; nothing was run.",
            None,
        ),
        Problem::StillRunning { retry_after } => say(
            StatusCode::CONFLICT,
            ABORTED,
            "still-running",
            "The first request with this key is still running",
            "Send the same request again later; it will get the first one's answer.",
            Some(*retry_after),
        ),
        Problem::NotYetDone { retry_after } => say(
            unavailable,
            UNAVAILABLE,
            "not-yet-done",
            "A message of this request is still being handled",
            "Deliver it again later; what is done by then is not run again.",
            Some(*retry_after),
        ),
        Problem::KeyReused { part } => Wording {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            grpc: 9,
            code: "key-reused",
            title: "This key belongs to another request",
            detail: format!(
                "The {part} differs from that of the first request with this key. \
                 A new message needs a new key."
            ),
            retry_after: None,
        },
        Problem::ResponseNotKept => say(
            StatusCode::CONFLICT,
            9,
            "response-not-kept",
            "The request was handled, and its response was not kept",
            "The first request with this key succeeded. It is not run again.",
            None,
        ),
        Problem::StoreUnavailable { retry_after } => say(
            unavailable,
            UNAVAILABLE,
            "store-unavailable",
            "The request cannot be protected from running twice",
            "The store does not answer; nothing was run. Send the same request again later.",
            Some(*retry_after),
        ),
        Problem::Unconfirmed { retry_after } => say(
            unavailable,
            UNAVAILABLE,
            "unconfirmed",
            "The outcome is not recorded yet",
            "The request ran and its record is not confirmed. Send the same request again later.",
            Some(*retry_after),
        ),
        Problem::Superseded { retry_after } => say(
            unavailable,
            UNAVAILABLE,
            "superseded",
            "Another run of this request took over",
            "Send the same request again later; it will get the other run's answer.",
            Some(*retry_after),
        ),
        Problem::Overloaded { retry_after } => say(
            unavailable,
            UNAVAILABLE,
            "overloaded",
            "Too many requests go on after their callers left",
            "Nothing was run. Send the same request again later.",
            Some(*retry_after),
        ),
        Problem::ResponseBroken => say(
            StatusCode::INTERNAL_SERVER_ERROR,
            13,
            "response-broken",
            "The handler's response ended with an error",
            "The response could not be read to its end. The request may be sent again.",
            None,
        ),
    }
}

fn refused(refusal: &Refusal) -> Wording {
    let (status, grpc, code, title) = match refusal.reason() {
        Reason::MissingKey => (400, 3, "missing-key", "The request has no key"),
        Reason::MalformedKey => (400, 3, "malformed-key", "The request's key is malformed"),
        Reason::MissingScope => (400, 3, "missing-scope", "The request names no scope"),
        Reason::MalformedBody => (400, 3, "malformed-body", "The request's body is malformed"),
        Reason::Unverified => (401, 16, "unverified", "The sender could not be verified"),
    };
    Wording {
        status: StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST),
        grpc,
        code,
        title,
        detail: refusal.detail().to_owned(),
        retry_after: None,
    }
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
