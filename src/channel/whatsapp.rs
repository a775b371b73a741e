//! WhatsApp, over Meta's Cloud API.

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

/// WhatsApp's Cloud API: up to a thousand messages, statuses, echoes and calls in a request,
/// which a repeat may group in another way.
///
/// A message has an id of its own. A status carries the id of the message that the business
/// sent, the same for sent, delivered and read; in a group also for each participant. So does
/// each event of a call. Account events have no id and pass.
///
/// | | |
/// | --- | --- |
/// | key | of a message `id`; of a status `status`, `id`, `status` and the participant of a group; of a message that the business sent from its phone `echo`, `id`; of a call `call`, `id`, `event` |
/// | scope | `metadata.phone_number_id` |
/// | conversation | the group, else the other party's phone number, else its user id |
/// | time | `timestamp` |
/// | waits | up to 4 s; no deadline is documented |
/// | repeats | for seven days, less and less often, until the answer is 200 |
/// | keeps | eight days |
/// | ack | 200 without a body |
///
/// <https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/create-webhook-endpoint>
///
/// ```
/// # #[cfg(feature = "verify")] {
/// use tower_idempotency::channel::WhatsApp;
/// use tower_idempotency::verify::MetaSignature;
///
/// let whatsapp = WhatsApp::verified_by(MetaSignature::new("app secret"));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct WhatsApp(Base);

const READS: &[&str] = &[
    "$.entry[*].changes[*].value.metadata.phone_number_id",
    "$.entry[*].changes[*].value.messages[*].id",
    "$.entry[*].changes[*].value.messages[*].from",
    "$.entry[*].changes[*].value.messages[*].from_user_id",
    "$.entry[*].changes[*].value.messages[*].group_id",
    "$.entry[*].changes[*].value.messages[*].timestamp",
    "$.entry[*].changes[*].value.statuses[*].id",
    "$.entry[*].changes[*].value.statuses[*].status",
    "$.entry[*].changes[*].value.statuses[*].recipient_id",
    "$.entry[*].changes[*].value.statuses[*].recipient_user_id",
    "$.entry[*].changes[*].value.statuses[*].recipient_participant_id",
    "$.entry[*].changes[*].value.statuses[*].recipient_participant_user_id",
    "$.entry[*].changes[*].value.statuses[*].timestamp",
    "$.entry[*].changes[*].value.message_echoes[*].id",
    "$.entry[*].changes[*].value.message_echoes[*].to",
    "$.entry[*].changes[*].value.message_echoes[*].to_user_id",
    "$.entry[*].changes[*].value.message_echoes[*].timestamp",
    "$.entry[*].changes[*].value.calls[*].id",
    "$.entry[*].changes[*].value.calls[*].event",
    "$.entry[*].changes[*].value.calls[*].direction",
    "$.entry[*].changes[*].value.calls[*].from",
    "$.entry[*].changes[*].value.calls[*].from_user_id",
    "$.entry[*].changes[*].value.calls[*].to",
    "$.entry[*].changes[*].value.calls[*].to_user_id",
    "$.entry[*].changes[*].value.calls[*].timestamp",
];

impl WhatsApp {
    /// Checks each request by `verifier`, such as
    /// [`MetaSignature`](crate::verify::MetaSignature), before it is read.
    pub fn verified_by<V: Verify>(verifier: V) -> Verified<Self, V> {
        Verified::new(Self::unverified(), verifier)
    }

    /// Believes every request: for one that was verified in front of the layer.
    pub fn unverified() -> Self {
        let terms = Terms {
            keep: Keep::For(Duration::from_hours(8 * 24)),
            horizon: Some(Duration::from_hours(7 * 24)),
            ..Terms::webhook("whatsapp")
        };
        Self(Base::new(terms, READS))
    }
}

impl Reader for WhatsApp {
    fn base(&self) -> &Base {
        &self.0
    }

    fn find(&self, _head: &Parts, root: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
        for entry in root.at("entry").elements() {
            for change in entry.at("changes").elements() {
                value(change.at("value"), found)?;
            }
        }
        Ok(())
    }
}

by_reader!(WhatsApp);

/// What happened at one phone number.
fn value(value: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
    let number = value.at("metadata").at("phone_number_id");
    for (kind, list) in value.members() {
        for event in list.elements() {
            add(kind, event, number, found)?;
        }
    }
    Ok(())
}

/// Adds a message, status, echo or call, if it has an id.
fn add(
    kind: &str,
    event: Node<'_>,
    number: Node<'_>,
    found: &mut Found<'_>,
) -> Result<(), Refusal> {
    let Some(id) = event.at("id").text() else {
        return Ok(());
    };
    let message = Message {
        scope: scope_at(number, "phone_number_id")?,
        id: &[id],
        conversation: event.first_text(other_party(kind, event)),
        sent_at: event.at("timestamp").text().and_then(seconds),
    };
    match kind {
        "messages" => found.add(event, message),
        "message_echoes" => found.add(event, message.named(&["echo", id])),
        "calls" => match event.at("event").text() {
            Some(what) => found.add(event, message.named(&["call", id, what])),
            None => Ok(()),
        },
        "statuses" => match (event.at("status").text(), event.first_text(PARTICIPANT)) {
            (Some(status), Some(of)) => {
                found.add(event, message.named(&["status", id, status, of]))
            }
            (Some(status), None) => found.add(event, message.named(&["status", id, status])),
            (None, _) => Ok(()),
        },
        _ => Ok(()),
    }
}

const PARTICIPANT: &[&str] = &["recipient_participant_id", "recipient_participant_user_id"];

/// The members that name the other party: the first that is there.
fn other_party(kind: &str, event: Node<'_>) -> &'static [&'static str] {
    match kind {
        "messages" => &["group_id", "from", "from_user_id"],
        "statuses" => &["recipient_id", "recipient_user_id"],
        "message_echoes" => &["to", "to_user_id"],
        "calls" if event.at("direction").text() == Some("BUSINESS_INITIATED") => {
            &["to", "to_user_id"]
        }
        "calls" => &["from", "from_user_id"],
        _ => &[],
    }
}
