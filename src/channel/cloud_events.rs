//! CloudEvents over HTTP.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderName, StatusCode};
use percent_encoding::percent_decode_str;

use crate::channel::contract::{Ack, Channel, Concern, Reason, Refusal, Terms};
use crate::channel::header_id;
use crate::channel::json::found::{Found, Message};
use crate::channel::json::reader::{self, Base, Reader, concern};
use crate::channel::json::shape::Shape;
use crate::channel::json::tree::Node;
use crate::channel::single::Single;
use crate::channel::when::calendar;
use crate::delivery::Delivery;
use crate::key::Key;
use crate::record::Keep;
use crate::verify::contract::Verify;
use crate::verify::verified::Verified;

/// CloudEvents 1.0 over HTTP, in each of its modes: attributes in headers (binary), in the body
/// (structured), or many events in an array (batch).
///
/// An id is unique within its source only, so both make the key. The handshake against abuse
/// (`OPTIONS`) passes. A request in another format (XML, Protobuf) passes unread.
///
/// | | |
/// | --- | --- |
/// | key | `source`, `id` |
/// | scope | none |
/// | conversation | none |
/// | time | `time` |
/// | waits | up to 4 s; deadlines are the sender's |
/// | repeats | as the sender does |
/// | keeps | a day |
/// | ack | 204 |
///
/// <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md>
///
/// ```
/// use http::request::Parts;
/// use tower_idempotency::channel::{CloudEvents, Refusal};
///
/// let events = CloudEvents::verified_by(|head: &Parts, _body: &[u8]| {
///     match head.headers.get("authorization") {
///         Some(token) if token_is_good(token.as_bytes()) => Ok(()),
///         _ => Err(Refusal::unverified("the bearer token is missing or bad")),
///     }
/// });
/// # fn token_is_good(_token: &[u8]) -> bool { true }
/// ```
#[derive(Clone, Debug)]
pub struct CloudEvents {
    structured: Base,
    batch: Base,
}

const EVENT: &[&str] = &["$.source", "$.id", "$.time"];
const BATCH: &[&str] = &["$[*].source", "$[*].id", "$[*].time"];

const SOURCE: HeaderName = HeaderName::from_static("ce-source");
const ID: HeaderName = HeaderName::from_static("ce-id");
const TIME: HeaderName = HeaderName::from_static("ce-time");

impl CloudEvents {
    /// Checks each request by `verifier` before it is read. CloudEvents have no signature of
    /// their own.
    pub fn verified_by<V: Verify>(verifier: V) -> Verified<Self, V> {
        Verified::new(Self::unverified(), verifier)
    }

    /// Believes every request: for one that was verified in front of the layer.
    pub fn unverified() -> Self {
        let terms = Terms {
            keep: Keep::For(Duration::from_hours(24)),
            ack: Ack {
                status: StatusCode::NO_CONTENT,
                ..Ack::default()
            },
            ..Terms::webhook("cloudevents")
        };
        Self {
            structured: Base::new(terms.clone(), EVENT),
            batch: Base::new(terms, BATCH),
        }
    }

    fn binary(&self, head: &Parts) -> Result<Vec<Delivery>, Refusal> {
        let (source, id) = (attribute(head, &SOURCE)?, attribute(head, &ID)?);
        let (Some(source), Some(id)) = (source, id) else {
            return Ok(Vec::new());
        };
        let single = Single {
            id: &[&source, &id],
            sent_at: attribute(head, &TIME)?.and_then(|time| calendar(&time)),
            ..Single::default()
        };
        single.delivery(&self.structured.terms.channel)
    }
}

/// How a request carries its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Binary,
    Structured,
    Batch,
}

impl Mode {
    fn of(head: &Parts) -> Self {
        let line = head.headers.get(CONTENT_TYPE);
        let line = line.and_then(|line| line.to_str().ok()).unwrap_or_default();
        let kind = line.split(';').next().unwrap_or_default().trim();
        let is = |known: &str| kind.eq_ignore_ascii_case(known);
        if is("application/cloudevents+json") {
            Self::Structured
        } else if is("application/cloudevents-batch+json") {
            Self::Batch
        } else {
            Self::Binary
        }
    }
}

/// An attribute in a header, decoded: section 3.1.3.2 of the binding.
fn attribute<'a>(head: &'a Parts, name: &HeaderName) -> Result<Option<Cow<'a, str>>, Refusal> {
    let Some(text) = header_id::text(head, name)? else {
        return Ok(None);
    };
    let decoded = percent_decode_str(text).decode_utf8().map(Some);
    decoded.map_err(|_| {
        let detail = format!("the header {name} is no UTF-8 when it is decoded");
        Refusal::new(Reason::MalformedKey, detail)
    })
}

impl Reader for CloudEvents {
    fn base(&self) -> &Base {
        &self.structured
    }

    fn shape(&self, head: &Parts) -> &Shape {
        match Mode::of(head) {
            Mode::Batch => &self.batch.shape,
            Mode::Structured | Mode::Binary => &self.structured.shape,
        }
    }

    fn find(&self, head: &Parts, root: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
        match Mode::of(head) {
            Mode::Batch => root.elements().try_for_each(|event| add(event, found)),
            Mode::Structured => add(root, found),
            Mode::Binary => Ok(()),
        }
    }
}

fn add(event: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
    let message = Message {
        sent_at: event.at("time").text().and_then(calendar),
        ..Message::default()
    };
    let id = [event.at("source").text(), event.at("id").text()];
    found.add_whole(event, id, message)
}

impl Channel for CloudEvents {
    fn terms(&self, _head: &Parts) -> &Terms {
        &self.structured.terms
    }

    fn concern(&self, head: &Parts) -> Result<Concern, Refusal> {
        Ok(concern(head))
    }

    fn deliveries(&self, head: &Parts, body: &[u8]) -> Result<Vec<Delivery>, Refusal> {
        match Mode::of(head) {
            Mode::Binary => self.binary(head),
            Mode::Structured | Mode::Batch => reader::deliveries(self, head, body),
        }
    }

    fn without(&self, head: &Parts, body: &Bytes, gone: &[&Key]) -> Option<Bytes> {
        match Mode::of(head) {
            Mode::Batch => reader::without(self, head, body, gone),
            Mode::Structured | Mode::Binary => None,
        }
    }
}
