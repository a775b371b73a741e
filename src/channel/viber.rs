//! Viber.

use std::time::Duration;

use http::request::Parts;

use crate::channel::contract::{Refusal, Reply, Terms};
use crate::channel::json::found::{Found, Message};
use crate::channel::json::reader::{Base, Reader, by_reader};
use crate::channel::json::tree::Node;
use crate::channel::scope::Scope;
use crate::channel::when::millis;
use crate::record::Keep;
use crate::verify::contract::Verify;
use crate::verify::verified::Verified;

/// Viber's webhooks: one event per request.
///
/// Tokens are integers above 2⁵³, which many JSON readers round; they are read digit for digit. A
/// receipt carries the token of the message that the bot sent, so its key says what happened to
/// it and who saw it. One URL can serve several accounts and the body does not name the account, so
/// the channel asks for it. The event `webhook`, which Viber sends when the webhook is set, passes.
///
/// | | |
/// | --- | --- |
/// | key | of a message `message_token`; of a receipt `event`, `message_token`, `user_id`; of anything else `event`, `message_token` |
/// | scope | the account, as the channel is told |
/// | conversation | the person |
/// | time | `timestamp` |
/// | waits | up to 4 s; no deadline is documented |
/// | repeats | for an hour, until the answer is 200 |
/// | keeps | four hours |
/// | reply | to `conversation_started` the answer may be a welcome message, and a repeat gets it |
/// | ack | 200 without a body |
///
/// <https://developers.viber.com/docs/api/rest-bot-api/#callbacks>
///
/// ```
/// # #[cfg(feature = "verify")] {
/// use tower_idempotency::channel::{Scope, Viber};
/// use tower_idempotency::verify::ViberSignature;
///
/// let viber = Viber::verified_by(ViberSignature::new("auth token"), Scope::fixed("shop"));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Viber {
    base: Base,
    account: Scope,
}

const READS: &[&str] = &[
    "$.event",
    "$.timestamp",
    "$.message_token",
    "$.user_id",
    "$.user.id",
    "$.sender.id",
];

impl Viber {
    /// Checks each request by `verifier`, such as
    /// [`ViberSignature`](crate::verify::ViberSignature), before it is read. `account` says whose
    /// event it is.
    pub fn verified_by<V: Verify>(verifier: V, account: Scope) -> Verified<Self, V> {
        Verified::new(Self::unverified(account), verifier)
    }

    /// Believes every request: for one that was verified in front of the layer. `account` says
    /// whose event it is.
    pub fn unverified(account: Scope) -> Self {
        let terms = Terms {
            keep: Keep::For(Duration::from_hours(4)),
            horizon: Some(Duration::from_hours(1)),
            reply: Reply::Record,
            ..Terms::webhook("viber")
        };
        Self {
            base: Base::new(terms, READS),
            account,
        }
    }
}

impl Reader for Viber {
    fn base(&self) -> &Base {
        &self.base
    }

    fn find(&self, head: &Parts, root: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
        let (event, token) = (root.at("event").text(), root.at("message_token").text());
        if event == Some("webhook") || token.is_none() {
            return Ok(());
        }
        let scope = self.account.of(head, b"")?;
        let user = root.at("user_id").text();
        let person = user
            .or_else(|| root.at("user").at("id").text())
            .or_else(|| root.at("sender").at("id").text());
        let message = Message {
            scope: &scope,
            conversation: person,
            sent_at: root.at("timestamp").text().and_then(millis),
            ..Message::default()
        };
        match event {
            Some("message") => found.add_whole(root, [token], message),
            Some("delivered" | "seen" | "failed") => {
                found.add_whole(root, [event, token, user], message)
            }
            _ => found.add_whole(root, [event, token], message),
        }
    }
}

by_reader!(Viber);
