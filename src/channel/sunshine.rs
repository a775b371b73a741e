//! Zendesk Sunshine Conversations.

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

/// Sunshine Conversations' webhooks: several events in a request, each with an id that Zendesk
/// names for this very purpose.
///
/// The id of a message is repeated by its deliveries, so it is no key. Zendesk takes the answers
/// 400, 401, 403, 404 and 406 as final and does not repeat then; this crate answers 503 while a
/// first run goes on.
///
/// | | |
/// | --- | --- |
/// | key | `events[*].id` |
/// | scope | `app.id` |
/// | conversation | `payload.conversation.id` |
/// | time | `createdAt` |
/// | waits | up to 15 s of the 20 s that Zendesk waits |
/// | repeats | four times in 15 minutes |
/// | keeps | an hour |
/// | ack | 200 without a body |
///
/// <https://docs.smooch.io/guide/webhooks/>
///
/// ```
/// # #[cfg(feature = "verify")] {
/// use tower_idempotency::channel::Sunshine;
/// use tower_idempotency::verify::SunshineToken;
///
/// let sunshine = Sunshine::verified_by(SunshineToken::new("webhook secret"));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Sunshine(Base);

const READS: &[&str] = &[
    "$.app.id",
    "$.events[*].id",
    "$.events[*].createdAt",
    "$.events[*].payload.conversation.id",
];

impl Sunshine {
    /// Checks each request by `verifier`, such as
    /// [`SunshineToken`](crate::verify::SunshineToken), before it is read.
    pub fn verified_by<V: Verify>(verifier: V) -> Verified<Self, V> {
        Verified::new(Self::unverified(), verifier)
    }

    /// Believes every request: for one that was verified in front of the layer.
    pub fn unverified() -> Self {
        let terms = Terms {
            wait: Duration::from_secs(15),
            keep: Keep::For(Duration::from_hours(1)),
            horizon: Some(Duration::from_mins(15)),
            ..Terms::webhook("sunshine")
        };
        Self(Base::new(terms, READS))
    }
}

impl Reader for Sunshine {
    fn base(&self) -> &Base {
        &self.0
    }

    fn find(&self, _head: &Parts, root: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
        for event in root.at("events").elements() {
            let Some(id) = event.at("id").text() else {
                continue;
            };
            let message = Message {
                scope: scope_at(root.at("app").at("id"), "app.id")?,
                id: &[id],
                conversation: event.down(&["payload", "conversation", "id"]).text(),
                sent_at: event.at("createdAt").text().and_then(calendar),
            };
            found.add(event, message)?;
        }
        Ok(())
    }
}

by_reader!(Sunshine);
