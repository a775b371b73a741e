//! Vonage's Messages API.

use std::time::Duration;

use http::request::Parts;

use crate::channel::contract::{Refusal, Terms};
use crate::channel::json::found::{Found, Message};
use crate::channel::json::reader::{Base, Reader, by_reader};
use crate::channel::json::tree::Node;
use crate::channel::when::calendar;
use crate::record::Keep;
use crate::verify::contract::Verify;
use crate::verify::verified::Verified;

/// Vonage's Messages API: one message or status per request.
///
/// A status carries the id of the message that was sent, the same for each of its statuses.
///
/// Requests carry a token over the body (JWT). A verifier is a closure that checks it by a library
/// of one's choice; see [`Verify`].
///
/// | | |
/// | --- | --- |
/// | key | `message_uuid`; of a status `status`, `message_uuid`, `status` |
/// | scope | none: ids are random |
/// | conversation | the service's address and the person's |
/// | time | `timestamp` |
/// | waits | up to 4 s; no deadline is documented |
/// | repeats | for a day, unless the answer is 200 or 204 |
/// | keeps | 25 hours |
/// | ack | 200 without a body |
///
/// <https://developer.vonage.com/en/messages/concepts/inbound-and-status-webhooks>
///
/// ```
/// use http::request::Parts;
/// use tower_idempotency::channel::{Refusal, Vonage};
///
/// let vonage = Vonage::verified_by(|head: &Parts, body: &[u8]| {
///     match head.headers.get("authorization") {
///         Some(token) if token_is_for(token.as_bytes(), body) => Ok(()),
///         _ => Err(Refusal::unverified("the bearer token is missing or bad")),
///     }
/// });
/// # fn token_is_for(_token: &[u8], _body: &[u8]) -> bool { true }
/// ```
#[derive(Clone, Debug)]
pub struct Vonage(Base);

const READS: &[&str] = &[
    "$.message_uuid",
    "$.status",
    "$.timestamp",
    "$.from",
    "$.from.number",
    "$.from.id",
    "$.to",
    "$.to.number",
    "$.to.id",
];

impl Vonage {
    /// Checks each request by `verifier` before it is read.
    pub fn verified_by<V: Verify>(verifier: V) -> Verified<Self, V> {
        Verified::new(Self::unverified(), verifier)
    }

    /// Believes every request: for one that was verified in front of the layer.
    pub fn unverified() -> Self {
        let terms = Terms {
            keep: Keep::For(Duration::from_hours(25)),
            horizon: Some(Duration::from_hours(24)),
            ..Terms::webhook("vonage")
        };
        Self(Base::new(terms, READS))
    }
}

impl Reader for Vonage {
    fn base(&self) -> &Base {
        &self.0
    }

    fn find(&self, _head: &Parts, root: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
        let (id, status) = (root.at("message_uuid").text(), root.at("status").text());
        let (from, to) = (party(root.at("from")), party(root.at("to")));
        // A status tells of what the service sent.
        let (service, person) = if status.is_some() {
            (from, to)
        } else {
            (to, from)
        };
        let conversation = service
            .zip(person)
            .map(|(service, person)| format!("{service}/{person}"));
        let message = Message {
            conversation: conversation.as_deref(),
            sent_at: root.at("timestamp").text().and_then(calendar),
            ..Message::default()
        };
        match status {
            Some(_) => found.add_whole(root, [Some("status"), id, status], message),
            None => found.add_whole(root, [id], message),
        }
    }
}

by_reader!(Vonage);

/// An address; version 0.1 nests it.
fn party(at: Node<'_>) -> Option<&str> {
    at.text().or_else(|| at.first_text(&["number", "id"]))
}
