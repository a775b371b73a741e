//! Discord's webhook events.

use std::time::Duration;

use http::StatusCode;
use http::request::Parts;

use crate::channel::contract::{Ack, Refusal, Terms};
use crate::channel::json::found::{Found, Message};
use crate::channel::json::reader::{Base, Reader, by_reader, scope_at};
use crate::channel::json::tree::Node;
use crate::channel::when::calendar;
use crate::record::Keep;
use crate::verify::contract::Verify;
use crate::verify::verified::Verified;

/// Discord's webhook events: one per request, without an id of its own.
///
/// An event is known by what it is about and when. PING is type 0 here, and passes every time;
/// type 1 is a real event, unlike in
/// [`DiscordInteractions`](crate::channel::DiscordInteractions).
///
/// | | |
/// | --- | --- |
/// | key | `event`, `event.type`, `event.data.id` (else `event.data.user.id`), `event.timestamp` |
/// | scope | `application_id` |
/// | conversation | the channel, else the lobby, else the person |
/// | time | `event.timestamp` |
/// | waits | up to 2 s of the 3 s that Discord waits |
/// | repeats | for ten minutes |
/// | keeps | an hour |
/// | ack | 204 |
///
/// <https://discord.com/developers/docs/events/webhook-events>
///
/// ```
/// # #[cfg(feature = "verify")]
/// # fn channel() -> Result<(), tower_idempotency::Error> {
/// use tower_idempotency::channel::DiscordEvents;
/// use tower_idempotency::verify::DiscordSignature;
///
/// let public_key = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8";
/// let events = DiscordEvents::verified_by(DiscordSignature::new(public_key)?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct DiscordEvents(Base);

const READS: &[&str] = &[
    "$.type",
    "$.application_id",
    "$.event.type",
    "$.event.timestamp",
    "$.event.data.id",
    "$.event.data.user.id",
    "$.event.data.channel_id",
    "$.event.data.lobby_id",
];

/// The type of a PING.
const PING: &str = "0";

impl DiscordEvents {
    /// Checks each request by `verifier`, such as
    /// [`DiscordSignature`](crate::verify::DiscordSignature), before it is read.
    pub fn verified_by<V: Verify>(verifier: V) -> Verified<Self, V> {
        Verified::new(Self::unverified(), verifier)
    }

    /// Believes every request: for one that was verified in front of the layer.
    pub fn unverified() -> Self {
        let terms = Terms {
            wait: Duration::from_secs(2),
            keep: Keep::For(Duration::from_hours(1)),
            horizon: Some(Duration::from_mins(10)),
            ack: Ack {
                status: StatusCode::NO_CONTENT,
                ..Ack::default()
            },
            ..Terms::webhook("discord_webhook_events")
        };
        Self(Base::new(terms, READS))
    }
}

impl Reader for DiscordEvents {
    fn base(&self) -> &Base {
        &self.0
    }

    fn find(&self, _head: &Parts, root: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
        let event = root.at("event");
        if root.at("type").text() == Some(PING) || !event.is_object() {
            return Ok(());
        }
        let data = event.at("data");
        let person = data.at("user").at("id").text();
        let time = event.at("timestamp").text();
        let place = data.first_text(&["channel_id", "lobby_id"]);
        let message = Message {
            scope: scope_at(root.at("application_id"), "application_id")?,
            conversation: place.or(person),
            sent_at: time.and_then(calendar),
            ..Message::default()
        };
        let about = data.at("id").text().or(person);
        let id = [Some("event"), event.at("type").text(), about, time];
        found.add_whole(root, id, message)
    }
}

by_reader!(DiscordEvents);
