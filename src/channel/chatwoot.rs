//! Chatwoot.

use std::time::Duration;

use http::HeaderName;
use http::request::Parts;

use crate::channel::contract::{Refusal, Terms};
use crate::channel::header_id;
use crate::channel::json::found::{Found, Message};
use crate::channel::json::reader::{Base, Reader, by_reader};
use crate::channel::json::tree::Node;
use crate::channel::when::calendar;
use crate::record::Keep;
use crate::verify::contract::Verify;
use crate::verify::verified::Verified;

/// Chatwoot's webhooks: one event per request.
///
/// Account webhook, inbox webhook and agent bot each deliver the same message, so a new message is
/// known by its id. An update carries that id and no version, and other events have the id of what
/// they are about; they are known by the header `X-Chatwoot-Delivery`, and pass where an older
/// server does not send it.
///
/// | | |
/// | --- | --- |
/// | key | of `message_created` `message_created`, `account.id`, `id`; else `delivery`, `X-Chatwoot-Delivery` |
/// | scope | `account.id` |
/// | conversation | `conversation.id`; of an event about a conversation `id` |
/// | time | `created_at` of a message |
/// | waits | up to 3 s of the 5 s that Chatwoot waits |
/// | repeats | never; the message is marked failed |
/// | keeps | a day |
/// | ack | 200 without a body |
///
/// <https://www.chatwoot.com/docs/product/features/webhooks>
///
/// ```
/// # #[cfg(feature = "verify")] {
/// use tower_idempotency::channel::Chatwoot;
/// use tower_idempotency::verify::ChatwootSignature;
///
/// let chatwoot = Chatwoot::verified_by(ChatwootSignature::new("webhook secret"));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Chatwoot(Base);

const DELIVERY: HeaderName = HeaderName::from_static("x-chatwoot-delivery");

const READS: &[&str] = &[
    "$.event",
    "$.id",
    "$.account.id",
    "$.conversation.id",
    "$.created_at",
];

impl Chatwoot {
    /// Checks each request by `verifier`, such as
    /// [`ChatwootSignature`](crate::verify::ChatwootSignature), before it is read.
    pub fn verified_by<V: Verify>(verifier: V) -> Verified<Self, V> {
        Verified::new(Self::unverified(), verifier)
    }

    /// Believes every request: for one that was verified in front of the layer.
    pub fn unverified() -> Self {
        let terms = Terms {
            wait: Duration::from_secs(3),
            keep: Keep::For(Duration::from_hours(24)),
            ..Terms::webhook("chatwoot")
        };
        Self(Base::new(terms, READS))
    }
}

impl Reader for Chatwoot {
    fn base(&self) -> &Base {
        &self.0
    }

    fn find(&self, head: &Parts, root: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
        let (event, id) = (root.at("event").text(), root.at("id").text());
        let account = root.at("account").at("id").text();
        let is_conversation = event.is_some_and(|event| event.starts_with("conversation_"));
        let conversation = root.at("conversation").at("id").text();
        let message = Message {
            // Ids of deliveries are unique without it.
            scope: account.unwrap_or_default(),
            conversation: conversation.or_else(|| id.filter(|_| is_conversation)),
            sent_at: root.at("created_at").text().and_then(calendar),
            ..Message::default()
        };
        if event == Some("message_created") {
            return found.add_whole(root, [event, account, id], message);
        }
        let delivery = header_id::text(head, &DELIVERY)?;
        found.add_whole(root, [Some("delivery"), delivery], message)
    }
}

by_reader!(Chatwoot);
