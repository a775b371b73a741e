//! Bird, once MessageBird: the Conversations API.

use std::time::Duration;

use http::request::Parts;

use crate::channel::contract::{Refusal, Terms};
use crate::channel::json::found::{Found, Message};
use crate::channel::json::reader::{Base, Reader, by_reader, scope_at};
use crate::channel::json::tree::Node;
use crate::channel::when::calendar;
use crate::record::Keep;
use crate::verify::contract::Verify;
use crate::verify::verified::Verified;

/// Bird's Conversations webhooks: one message per request.
///
/// An update carries the id of the message whose status changed, so its key says to what. Events
/// about conversations have no message and pass.
///
/// Requests carry a token over URL and body (`MessageBird-Signature-JWT`). A verifier is a closure
/// that checks it by a library of one's choice; see [`Verify`].
///
/// | | |
/// | --- | --- |
/// | key | `message.id` of `message.created`; else `type`, `message.id`, `message.status` |
/// | scope | `message.channelId` |
/// | conversation | `conversation.id` |
/// | time | `message.updatedDatetime` |
/// | waits | up to 4 s; no deadline is documented |
/// | repeats | for eight hours, less and less often |
/// | keeps | twelve hours |
/// | ack | 200 without a body |
///
/// <https://docs.bird.com/api/notifications-api>
///
/// ```
/// use http::request::Parts;
/// use tower_idempotency::channel::{Bird, Refusal};
///
/// let bird = Bird::verified_by(|head: &Parts, body: &[u8]| {
///     match head.headers.get("messagebird-signature-jwt") {
///         Some(token) if token_is_for(token.as_bytes(), &head.uri, body) => Ok(()),
///         _ => Err(Refusal::unverified("the signature is missing or bad")),
///     }
/// });
/// # fn token_is_for(_token: &[u8], _uri: &http::Uri, _body: &[u8]) -> bool { true }
/// ```
#[derive(Clone, Debug)]
pub struct Bird(Base);

const READS: &[&str] = &[
    "$.type",
    "$.conversation.id",
    "$.message.id",
    "$.message.status",
    "$.message.channelId",
    "$.message.conversationId",
    "$.message.updatedDatetime",
];

impl Bird {
    /// Checks each request by `verifier` before it is read.
    pub fn verified_by<V: Verify>(verifier: V) -> Verified<Self, V> {
        Verified::new(Self::unverified(), verifier)
    }

    /// Believes every request: for one that was verified in front of the layer.
    pub fn unverified() -> Self {
        let terms = Terms {
            keep: Keep::For(Duration::from_hours(12)),
            horizon: Some(Duration::from_hours(8)),
            ..Terms::webhook("bird")
        };
        Self(Base::new(terms, READS))
    }
}

impl Reader for Bird {
    fn base(&self) -> &Base {
        &self.0
    }

    fn find(&self, _head: &Parts, root: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
        let (kind, about) = (root.at("type").text(), root.at("message"));
        let id = about.at("id").text();
        if id.is_none() {
            return Ok(());
        }
        let conversation = root.at("conversation").at("id").text();
        let message = Message {
            scope: scope_at(about.at("channelId"), "message.channelId")?,
            conversation: conversation.or_else(|| about.at("conversationId").text()),
            sent_at: about.at("updatedDatetime").text().and_then(calendar),
            ..Message::default()
        };
        match kind {
            Some("message.created") => found.add_whole(root, [id], message),
            _ => found.add_whole(root, [kind, id, about.at("status").text()], message),
        }
    }
}

by_reader!(Bird);
