//! Infobip.

use std::time::Duration;

use http::request::Parts;

use crate::channel::contract::{Refusal, Terms};
use crate::channel::json::found::{Found, Message};
use crate::channel::json::reader::{Base, Reader, by_reader};
use crate::channel::json::tree::Node;
use crate::channel::scope::Scope;
use crate::channel::when::calendar;
use crate::record::Keep;
use crate::verify::contract::Verify;
use crate::verify::verified::Verified;

/// Infobip's webhooks: messages and reports, many in a request.
///
/// A report carries the id of the message that was sent, which its sender may have chosen, so its
/// key says what happened to it. The body does not name the account, so the channel asks for it.
///
/// How requests are signed is set per subscription (basic, HMAC, OAuth). A verifier is a closure,
/// or [`HmacSignature`](crate::verify::HmacSignature); see [`Verify`].
///
/// | | |
/// | --- | --- |
/// | key | `messageId`; of a delivery report `status`, `messageId`, `status.name`; of a seen report `seen`, `messageId` |
/// | scope | the account, as the channel is told |
/// | conversation | the person's address |
/// | time | `receivedAt`, `doneAt`, `seenAt` |
/// | waits | up to 4 s; no deadline is documented |
/// | repeats | after 1 min + 1 min · n², for about 41 hours |
/// | keeps | two days |
/// | ack | 200 without a body |
///
/// <https://www.infobip.com/docs/api/channels/sms>
///
/// ```
/// use http::request::Parts;
/// use tower_idempotency::channel::{Infobip, Refusal, Scope};
///
/// let check = |head: &Parts, _body: &[u8]| match head.headers.get("authorization") {
///     Some(password) if password_is_good(password.as_bytes()) => Ok(()),
///     _ => Err(Refusal::unverified("the password is missing or bad")),
/// };
/// let infobip = Infobip::verified_by(check, Scope::fixed("shop"));
/// # fn password_is_good(_password: &[u8]) -> bool { true }
/// ```
#[derive(Clone, Debug)]
pub struct Infobip {
    base: Base,
    account: Scope,
}

const READS: &[&str] = &[
    "$.results[*].messageId",
    "$.results[*].status.name",
    "$.results[*].from",
    "$.results[*].to",
    "$.results[*].receivedAt",
    "$.results[*].doneAt",
    "$.results[*].seenAt",
];

impl Infobip {
    /// Checks each request by `verifier` before it is read. `account` says whose messages they
    /// are.
    pub fn verified_by<V: Verify>(verifier: V, account: Scope) -> Verified<Self, V> {
        Verified::new(Self::unverified(account), verifier)
    }

    /// Believes every request: for one that was verified in front of the layer. `account` says
    /// whose messages they are.
    pub fn unverified(account: Scope) -> Self {
        let terms = Terms {
            keep: Keep::For(Duration::from_hours(48)),
            horizon: Some(Duration::from_mins(2_490)),
            ..Terms::webhook("infobip")
        };
        Self {
            base: Base::new(terms, READS),
            account,
        }
    }
}

impl Reader for Infobip {
    fn base(&self) -> &Base {
        &self.base
    }

    fn find(&self, head: &Parts, root: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
        for result in root.at("results").elements() {
            let id = result.at("messageId").text();
            if id.is_none() {
                continue;
            }
            let scope = self.account.of(head, b"")?;
            let status = result.at("status").at("name").text();
            let seen = result.at("seenAt").text();
            let is_report = status.is_some() || seen.is_some();
            let time = result.first_text(&["receivedAt", "doneAt", "seenAt"]);
            let message = Message {
                scope: &scope,
                conversation: result.at(if is_report { "to" } else { "from" }).text(),
                sent_at: time.and_then(calendar),
                ..Message::default()
            };
            match (status, seen) {
                (Some(_), _) => found.add_whole(result, [Some("status"), id, status], message)?,
                (None, Some(_)) => found.add_whole(result, [Some("seen"), id], message)?,
                (None, None) => found.add_whole(result, [id], message)?,
            }
        }
        Ok(())
    }
}

by_reader!(Infobip);
