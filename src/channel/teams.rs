//! Microsoft Teams, and whatever else speaks the Bot Framework.

use std::time::Duration;

use http::request::Parts;

use crate::channel::contract::{Refusal, Reply, Terms};
use crate::channel::json::found::{Found, Message};
use crate::channel::json::reader::{Base, Reader, by_reader, scope_at};
use crate::channel::json::tree::Node;
use crate::channel::when::calendar;
use crate::record::Keep;
use crate::verify::contract::Verify;
use crate::verify::verified::Verified;

/// The Bot Framework's activities: one per request.
///
/// In Teams the id of a message is a time in milliseconds, which two conversations can share;
/// edits, deletions and reactions carry the id of the message that they are about. Activities
/// without an id (`typing`) pass.
///
/// Requests carry a token and no signature over the body. A verifier is a closure that checks the
/// token by a library of one's choice; see [`Verify`]. Ids are times and can be guessed, so an
/// unverified endpoint lets anybody suppress a message.
///
/// | | |
/// | --- | --- |
/// | key | `type`, `conversation.id`, `id`; edits and deletions also `timestamp`; reactions also `from.id`, `timestamp` |
/// | scope | the bot: `recipient.id` |
/// | conversation | `conversation.id` |
/// | time | `timestamp` |
/// | waits | up to 10 s of the 15 s that Teams waits |
/// | repeats | after 15 s; the schedule is not documented |
/// | keeps | a day |
/// | reply | to an `invoke` the answer is the reply, and a repeat gets it |
/// | ack | 200 without a body |
///
/// <https://github.com/microsoft/botframework-sdk/blob/main/specs/botframework-activity/botframework-activity.md>
///
/// ```
/// use http::request::Parts;
/// use tower_idempotency::channel::{Refusal, Teams};
///
/// let teams = Teams::verified_by(|head: &Parts, _body: &[u8]| {
///     match head.headers.get("authorization") {
///         Some(token) if token_is_good(token.as_bytes()) => Ok(()),
///         _ => Err(Refusal::unverified("the bearer token is missing or bad")),
///     }
/// });
/// # fn token_is_good(_token: &[u8]) -> bool { true }
/// ```
#[derive(Clone, Debug)]
pub struct Teams(Base);

const READS: &[&str] = &[
    "$.type",
    "$.id",
    "$.timestamp",
    "$.conversation.id",
    "$.from.id",
    "$.recipient.id",
];

impl Teams {
    /// Checks each request by `verifier` before it is read.
    pub fn verified_by<V: Verify>(verifier: V) -> Verified<Self, V> {
        Verified::new(Self::unverified(), verifier)
    }

    /// Believes every request: for one that was verified in front of the layer. Ids of messages
    /// are times; whoever guesses one suppresses that message.
    pub fn unverified() -> Self {
        let terms = Terms {
            wait: Duration::from_secs(10),
            keep: Keep::For(Duration::from_hours(24)),
            reply: Reply::Record,
            ..Terms::webhook("teams")
        };
        Self(Base::new(terms, READS))
    }
}

impl Reader for Teams {
    fn base(&self) -> &Base {
        &self.0
    }

    fn find(&self, _head: &Parts, root: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
        let text = |name| root.at(name).text();
        let inner_id = |name| root.at(name).at("id").text();
        let (kind, id, time) = (text("type"), text("id"), text("timestamp"));
        let (conversation, from) = (inner_id("conversation"), inner_id("from"));
        if id.is_none() {
            return Ok(());
        }
        let message = Message {
            scope: scope_at(root.at("recipient").at("id"), "recipient.id")?,
            conversation,
            sent_at: time.and_then(calendar),
            ..Message::default()
        };
        match kind {
            Some("messageReaction") => {
                found.add_whole(root, [kind, conversation, id, from, time], message)
            }
            Some("messageUpdate" | "messageDelete") => {
                found.add_whole(root, [kind, conversation, id, time], message)
            }
            _ => found.add_whole(root, [kind, conversation, id], message),
        }
    }
}

by_reader!(Teams);
