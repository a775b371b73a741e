//! A channel whose unknown outcomes are parked.

use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;

use crate::channel::contract::{Channel, Concern, OnUnknown, Refusal, Terms};
use crate::delivery::Delivery;
use crate::key::Key;

/// A channel that parks a message whose run ended without saying whether its work was done,
/// instead of running it again; see [`OnUnknown::Park`].
///
/// For some of the channels of a [`ByPath`](crate::channel::ByPath), where others run again; the
/// layer's own [`on_unknown`](crate::IdempotencyLayer::on_unknown) is for all of them.
///
/// ```
/// use std::time::Duration;
///
/// use tower_idempotency::channel::{ByPath, IdempotencyKey, Parking, Scope, WhatsApp};
///
/// let payments = IdempotencyKey::scoped_by(Scope::header("x-user")).named("payments");
/// let channels = ByPath::new()
///     .at("/payments", Parking::new(payments, Duration::from_hours(24)))
///     .at("/webhooks/whatsapp", WhatsApp::unverified());
/// ```
#[derive(Clone, Debug)]
pub struct Parking<C> {
    channel: C,
    unknown_for: Duration,
}

impl<C: Channel> Parking<C> {
    /// Parks `channel`'s messages for `unknown_for`; `Duration::MAX` is until they are settled.
    pub fn new(channel: C, unknown_for: Duration) -> Self {
        Self {
            channel,
            unknown_for,
        }
    }
}

impl<C: Channel> Channel for Parking<C> {
    fn terms(&self, head: &Parts) -> &Terms {
        self.channel.terms(head)
    }

    fn all_terms(&self) -> Vec<&Terms> {
        self.channel.all_terms()
    }

    fn concern(&self, head: &Parts) -> Result<Concern, Refusal> {
        self.channel.concern(head)
    }

    fn verify(&self, head: &Parts, body: &[u8]) -> Result<(), Refusal> {
        self.channel.verify(head, body)
    }

    fn is_verifying(&self, head: &Parts) -> bool {
        self.channel.is_verifying(head)
    }

    fn deliveries(&self, head: &Parts, body: &[u8]) -> Result<Vec<Delivery>, Refusal> {
        self.channel.deliveries(head, body)
    }

    fn on_unknown(&self, _: &Parts) -> OnUnknown {
        OnUnknown::Park {
            unknown_for: self.unknown_for,
        }
    }

    fn without(&self, head: &Parts, body: &Bytes, gone: &[&Key]) -> Option<Bytes> {
        self.channel.without(head, body, gone)
    }
}
