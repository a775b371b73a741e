//! Intercom.

use std::time::Duration;

use http::request::Parts;

use crate::channel::contract::{Refusal, Terms};
use crate::channel::json::found::{Found, Message};
use crate::channel::json::reader::{Base, Reader, by_reader, scope_at};
use crate::channel::json::tree::Node;
use crate::channel::when::seconds;
use crate::record::Keep;
use crate::verify::contract::Verify;
use crate::verify::verified::Verified;

/// Intercom's webhooks: one notification per request.
///
/// `data.item.id` is the conversation, the same for each of its replies, so it is no key. The
/// ping's id is null, so that it passes every time.
///
/// | | |
/// | --- | --- |
/// | key | `id` |
/// | scope | `app_id` |
/// | conversation | `data.item.id`, where the item is a conversation |
/// | time | `created_at` |
/// | waits | up to 3 s of the 5 s that Intercom is said to wait |
/// | repeats | once, after a minute |
/// | keeps | a day |
/// | ack | 200 without a body |
///
/// <https://developers.intercom.com/docs/webhooks>
///
/// ```
/// # #[cfg(feature = "verify")] {
/// use tower_idempotency::channel::Intercom;
/// use tower_idempotency::verify::IntercomSignature;
///
/// let intercom = Intercom::verified_by(IntercomSignature::new("client secret"));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Intercom(Base);

const READS: &[&str] = &[
    "$.id",
    "$.app_id",
    "$.created_at",
    "$.data.item.type",
    "$.data.item.id",
];

impl Intercom {
    /// Checks each request by `verifier`, such as
    /// [`IntercomSignature`](crate::verify::IntercomSignature), before it is read.
    pub fn verified_by<V: Verify>(verifier: V) -> Verified<Self, V> {
        Verified::new(Self::unverified(), verifier)
    }

    /// Believes every request: for one that was verified in front of the layer.
    pub fn unverified() -> Self {
        let terms = Terms {
            wait: Duration::from_secs(3),
            keep: Keep::For(Duration::from_hours(24)),
            ..Terms::webhook("intercom")
        };
        Self(Base::new(terms, READS))
    }
}

impl Reader for Intercom {
    fn base(&self) -> &Base {
        &self.0
    }

    fn find(&self, _head: &Parts, root: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
        let Some(id) = root.at("id").text() else {
            return Ok(());
        };
        let item = root.at("data").at("item");
        let is_conversation = item.at("type").text() == Some("conversation");
        let conversation = item.at("id").text().filter(|_| is_conversation);
        let message = Message {
            scope: scope_at(root.at("app_id"), "app_id")?,
            id: &[id],
            conversation,
            sent_at: root.at("created_at").text().and_then(seconds),
        };
        found.add(root, message)
    }
}

by_reader!(Intercom);
