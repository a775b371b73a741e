//! Standard Webhooks.

use std::time::Duration;

use http::HeaderName;
use http::request::Parts;

use crate::channel::contract::{Channel, Concern, Refusal, Terms};
use crate::channel::header_id;
use crate::channel::json::reader::concern;
use crate::channel::scope::Scope;
use crate::channel::single::Single;
use crate::delivery::Delivery;
use crate::record::Keep;
use crate::verify::contract::Verify;
use crate::verify::verified::Verified;

const ID: HeaderName = HeaderName::from_static("webhook-id");

/// The webhooks of any sender that follows Standard Webhooks: one event per request, named by the
/// header `webhook-id`, which is the same in every attempt.
///
/// Each sender makes ids of its own, so the scope names the sender.
///
/// | | |
/// | --- | --- |
/// | key | `webhook-id` |
/// | scope | asked for: which sender it is |
/// | conversation, time | none |
/// | waits | up to 12 s of the 15 s that a sender should wait |
/// | repeats | for 75 h 35 min by the schedule that the standard suggests |
/// | keeps | four days |
/// | ack | 200 without a body |
///
/// <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>
///
/// ```
/// # #[cfg(feature = "verify")] {
/// use tower_idempotency::channel::{Scope, StandardWebhooks};
/// use tower_idempotency::verify::StandardSignature;
///
/// # fn main() -> Result<(), tower_idempotency::Error> {
/// let signature = StandardSignature::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?;
/// let shop = StandardWebhooks::verified_by(signature, Scope::fixed("shop"));
/// # Ok(())
/// # }
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct StandardWebhooks {
    terms: Terms,
    sender: Scope,
}

impl StandardWebhooks {
    /// Checks each request by `verifier`, such as
    /// [`StandardSignature`](crate::verify::StandardSignature), before it is read. `sender` says
    /// whose ids they are.
    pub fn verified_by<V: Verify>(verifier: V, sender: Scope) -> Verified<Self, V> {
        Verified::new(Self::unverified(sender), verifier)
    }

    /// Believes every request: for one that was verified in front of the layer.
    pub fn unverified(sender: Scope) -> Self {
        Self {
            terms: Terms {
                wait: Duration::from_secs(12),
                keep: Keep::For(Duration::from_hours(96)),
                horizon: Some(Duration::from_secs(272_105)),
                ..Terms::webhook("standard_webhooks")
            },
            sender,
        }
    }
}

impl Channel for StandardWebhooks {
    fn terms(&self, _head: &Parts) -> &Terms {
        &self.terms
    }

    fn concern(&self, head: &Parts) -> Result<Concern, Refusal> {
        Ok(concern(head))
    }

    fn deliveries(&self, head: &Parts, body: &[u8]) -> Result<Vec<Delivery>, Refusal> {
        let Some(id) = header_id::text(head, &ID)? else {
            return Ok(Vec::new());
        };
        let single = Single {
            scope: &self.sender.of(head, body)?,
            id: &[id],
            ..Single::default()
        };
        single.delivery(&self.terms.channel)
    }
}
