//! Discord's interactions.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use http::request::Parts;

use crate::channel::contract::{Ack, Refusal, Reply, Terms};
use crate::channel::json::found::{Found, Message};
use crate::channel::json::reader::{Base, Reader, by_reader};
use crate::channel::json::tree::Node;
use crate::record::Keep;
use crate::verify::contract::Verify;
use crate::verify::verified::Verified;

/// Discord's interactions: commands, buttons and forms, one per request.
///
/// `data.id` is the command and `message.id` the message with the button, the same each time, so
/// they are no keys. PING (type 1) has an id and passes every time all the same. Webhook events,
/// where type 1 is a real event, are another channel:
/// [`DiscordEvents`](crate::channel::DiscordEvents).
///
/// | | |
/// | --- | --- |
/// | key | `id` |
/// | scope | none: ids are unique in all of Discord |
/// | conversation | `channel_id` |
/// | time | none |
/// | waits | up to 2 s of the 3 s that Discord waits |
/// | repeats | none is documented; the token is void after 3 s |
/// | keeps | an hour |
/// | reply | the answer is the reply, and a repeat gets it |
/// | ack | 200, `{"type":5}`: the reply comes later |
///
/// <https://discord.com/developers/docs/interactions/receiving-and-responding>
///
/// ```
/// # #[cfg(feature = "verify")]
/// # fn channel() -> Result<(), tower_idempotency::Error> {
/// use tower_idempotency::channel::DiscordInteractions;
/// use tower_idempotency::verify::DiscordSignature;
///
/// let public_key = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8";
/// let interactions = DiscordInteractions::verified_by(DiscordSignature::new(public_key)?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct DiscordInteractions(Base);

const READS: &[&str] = &["$.type", "$.id", "$.channel_id", "$.channel.id"];

/// `InteractionType::PING`.
const PING: &str = "1";

impl DiscordInteractions {
    /// Checks each request by `verifier`, such as
    /// [`DiscordSignature`](crate::verify::DiscordSignature), before it is read. Discord sends bad
    /// signatures now and then and drops an endpoint that accepts them.
    pub fn verified_by<V: Verify>(verifier: V) -> Verified<Self, V> {
        Verified::new(Self::unverified(), verifier)
    }

    /// Believes every request: for one that was verified in front of the layer.
    pub fn unverified() -> Self {
        let terms = Terms {
            wait: Duration::from_secs(2),
            keep: Keep::For(Duration::from_hours(1)),
            reply: Reply::Record,
            ack: Ack {
                content_type: Some(HeaderValue::from_static("application/json")),
                body: Bytes::from_static(br#"{"type":5}"#),
                ..Ack::default()
            },
            ..Terms::webhook("discord_interactions")
        };
        Self(Base::new(terms, READS))
    }
}

impl Reader for DiscordInteractions {
    fn base(&self) -> &Base {
        &self.0
    }

    fn find(&self, _head: &Parts, root: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
        if root.at("type").text() == Some(PING) {
            return Ok(());
        }
        let channel = root.at("channel_id").text();
        let message = Message {
            conversation: channel.or_else(|| root.at("channel").at("id").text()),
            ..Message::default()
        };
        found.add_whole(root, [root.at("id").text()], message)
    }
}

by_reader!(DiscordInteractions);
