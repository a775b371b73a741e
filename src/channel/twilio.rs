//! Twilio: SMS, WhatsApp, Conversations, status callbacks.

use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, StatusCode};

use crate::channel::contract::{Ack, Channel, Concern, Reason, Refusal, Reply, Terms};
use crate::channel::form::fields;
use crate::channel::json::reader::concern;
use crate::channel::single::Single;
use crate::channel::text::present;
use crate::delivery::Delivery;
use crate::record::Keep;
use crate::verify::contract::Verify;
use crate::verify::verified::Verified;

/// Twilio's messaging webhooks: one form per request.
///
/// A status callback repeats the id of the message whose status it tells, and an update in
/// Conversations that of the message updated, so their keys say what happened to it. Events without
/// a message pass: calls, conversations, participants.
///
/// Twilio's signature holds no time: a captured request is accepted for as long as the auth token
/// lives, and only its record keeps it from running again. Choose
/// [`keep`](crate::IdempotencyLayer::keep) accordingly.
///
/// `I-Twilio-Idempotency-Token` names a request and not a message, so it is no key.
///
/// | | |
/// | --- | --- |
/// | key | `MessageSid`; `status`, `MessageSid`, `MessageStatus`; in Conversations `MessageSid` for `onMessageAdded`, else `EventType`, `MessageSid`, `DateUpdated`, and `DeliveryReceiptSid` where there is one |
/// | scope | `AccountSid` |
/// | conversation | `ConversationSid`, else the service's address and the person's |
/// | time | none |
/// | waits | up to 10 s of the 15 s that Twilio waits; Conversations wait 5 s |
/// | repeats | once after a failed connection; more where the URL asks for it |
/// | keeps | a day |
/// | reply | the answer is TwiML, and a repeat gets it |
/// | ack | 200, an empty `<Response>` |
///
/// <https://www.twilio.com/docs/messaging/guides/webhook-request>,
/// <https://www.twilio.com/docs/usage/webhooks/webhooks-connection-overrides>
///
/// ```
/// # #[cfg(feature = "verify")] {
/// use tower_idempotency::channel::Twilio;
/// use tower_idempotency::verify::TwilioSignature;
///
/// let twilio = Twilio::verified_by(TwilioSignature::new("auth token"));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Twilio {
    terms: Terms,
}

impl Twilio {
    /// Checks each request by `verifier`, such as
    /// [`TwilioSignature`](crate::verify::TwilioSignature), before it is read.
    pub fn verified_by<V: Verify>(verifier: V) -> Verified<Self, V> {
        Verified::new(Self::unverified(), verifier)
    }

    /// Believes every request: for one that was verified in front of the layer.
    pub fn unverified() -> Self {
        Self {
            terms: Terms {
                wait: Duration::from_secs(10),
                keep: Keep::For(Duration::from_hours(24)),
                horizon: Some(Duration::from_secs(15)),
                reply: Reply::Record,
                ack: Ack {
                    status: StatusCode::OK,
                    content_type: Some(HeaderValue::from_static("text/xml")),
                    body: Bytes::from_static(NO_REPLY),
                },
                ..Terms::webhook("twilio")
            },
        }
    }
}

const NO_REPLY: &[u8] = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?><Response></Response>";

const FIELDS: [&str; 9] = [
    "MessageSid",
    "AccountSid",
    "MessageStatus",
    "EventType",
    "DateUpdated",
    "DeliveryReceiptSid",
    "ConversationSid",
    "From",
    "To",
];

/// The fields of [`FIELDS`], without the blank ones.
#[derive(Clone, Copy)]
struct Form<'a> {
    message: &'a str,
    account: Option<&'a str>,
    status: Option<&'a str>,
    event: Option<&'a str>,
    updated: Option<&'a str>,
    receipt: Option<&'a str>,
    conversation: Option<&'a str>,
    from: Option<&'a str>,
    to: Option<&'a str>,
}

impl<'a> Form<'a> {
    /// `None` if it is about no message.
    fn of(values: &'a [Option<impl AsRef<str>>]) -> Option<Self> {
        let mut values = values
            .iter()
            .map(|it| present(it.as_ref().map(AsRef::as_ref)));
        let mut next = || values.next().flatten();
        Some(Self {
            message: next()?,
            account: next(),
            status: next(),
            event: next(),
            updated: next(),
            receipt: next(),
            conversation: next(),
            from: next(),
            to: next(),
        })
    }

    /// The parts of the key; `None` if it says too little to tell it from another.
    fn id(&self) -> Option<Vec<&'a str>> {
        // First: status callbacks of WhatsApp have an `EventType` too.
        if let Some(status) = self.status {
            return Some(vec!["status", self.message, status]);
        }
        match self.event {
            None | Some("onMessageAdded") => Some(vec![self.message]),
            Some(event) => {
                let mut id = vec![event, self.message, self.updated?];
                id.extend(self.receipt);
                Some(id)
            }
        }
    }

    /// The conversation, the same for both directions: a status is told of what the service sent.
    fn conversation(&self) -> Option<String> {
        if let Some(conversation) = self.conversation {
            return Some(conversation.to_owned());
        }
        let (from, to) = self.from.zip(self.to)?;
        Some(match self.status {
            Some(_) => format!("{from}|{to}"),
            None => format!("{to}|{from}"),
        })
    }
}

impl Channel for Twilio {
    fn terms(&self, _head: &Parts) -> &Terms {
        &self.terms
    }

    fn concern(&self, head: &Parts) -> Result<Concern, Refusal> {
        Ok(concern(head))
    }

    fn deliveries(&self, _head: &Parts, body: &[u8]) -> Result<Vec<Delivery>, Refusal> {
        let values = fields(body, &FIELDS)?;
        let form = Form::of(&values);
        let Some((form, id)) = form.and_then(|form| Some((form, form.id()?))) else {
            return Ok(Vec::new());
        };
        let conversation = form.conversation();
        let missing = || Refusal::new(Reason::MissingScope, "the form has no `AccountSid`");
        let single = Single {
            scope: form.account.ok_or_else(missing)?,
            id: &id,
            conversation: conversation.as_deref(),
            sent_at: None,
        };
        single.delivery(&self.terms.channel)
    }
}
