//! LINE.

use std::time::Duration;

use http::request::Parts;

use crate::channel::contract::{Refusal, Terms};
use crate::channel::json::found::{Found, Message};
use crate::channel::json::reader::{Base, Reader, by_reader, scope_at};
use crate::channel::json::tree::Node;
use crate::channel::when::millis;
use crate::record::Keep;
use crate::verify::contract::Verify;
use crate::verify::verified::Verified;

/// LINE's webhooks: several events in a request, each with an id of its own.
///
/// LINE repeats only where redelivery is switched on for the channel. `isRedelivery` says nothing
/// about whether the first attempt arrived, so it is not read; the id of a message is repeated when
/// it is edited or taken back, so it is no key. The console's Verify button sends no events, which
/// passes.
///
/// | | |
/// | --- | --- |
/// | key | `webhookEventId` |
/// | scope | the bot: `destination` |
/// | conversation | the group or room, else the person |
/// | time | `timestamp` |
/// | waits | up to 1 s of the 2 s that LINE waits |
/// | repeats | for a time that LINE does not disclose |
/// | keeps | seven days |
/// | ack | 200 without a body |
///
/// <https://developers.line.biz/en/docs/messaging-api/receiving-messages/>
///
/// ```
/// # #[cfg(feature = "verify")] {
/// use tower_idempotency::channel::Line;
/// use tower_idempotency::verify::LineSignature;
///
/// let line = Line::verified_by(LineSignature::new("channel secret"));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Line(Base);

const READS: &[&str] = &[
    "$.destination",
    "$.events[*].webhookEventId",
    "$.events[*].timestamp",
    "$.events[*].source.groupId",
    "$.events[*].source.roomId",
    "$.events[*].source.userId",
];

impl Line {
    /// Checks each request by `verifier`, such as
    /// [`LineSignature`](crate::verify::LineSignature), before it is read.
    pub fn verified_by<V: Verify>(verifier: V) -> Verified<Self, V> {
        Verified::new(Self::unverified(), verifier)
    }

    /// Believes every request: for one that was verified in front of the layer.
    pub fn unverified() -> Self {
        let terms = Terms {
            wait: Duration::from_secs(1),
            keep: Keep::For(Duration::from_hours(7 * 24)),
            ..Terms::webhook("line")
        };
        Self(Base::new(terms, READS))
    }
}

impl Reader for Line {
    fn base(&self) -> &Base {
        &self.0
    }

    fn find(&self, _head: &Parts, root: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
        for event in root.at("events").elements() {
            let Some(id) = event.at("webhookEventId").text() else {
                continue;
            };
            let source = event.at("source");
            let message = Message {
                scope: scope_at(root.at("destination"), "destination")?,
                id: &[id],
                conversation: source.first_text(&["groupId", "roomId", "userId"]),
                sent_at: event.at("timestamp").text().and_then(millis),
            };
            found.add(event, message)?;
        }
        Ok(())
    }
}

by_reader!(Line);
