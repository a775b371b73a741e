//! A channel whose requests are verified first.

use std::fmt;

use bytes::Bytes;
use http::request::Parts;

use crate::channel::contract::{Channel, Concern, OnUnknown, Refusal, Terms};
use crate::delivery::Delivery;
use crate::key::Key;
use crate::verify::contract::Verify;

/// A channel whose requests are verified before anything is read out of them.
///
/// The channels of this crate make one by their `verified_by`. For a [`Channel`] of one's own,
/// [`Verified::new`] does it:
///
/// ```
/// # use http::request::Parts;
/// # use tower_idempotency::channel::{Channel, Refusal};
/// # use tower_idempotency::verify::{Verified, Verify};
/// fn guarded(mine: impl Channel, signature: impl Verify) -> impl Channel {
///     Verified::new(mine, signature)
/// }
/// ```
///
/// What does not concern the channel is not verified: safe methods (GET handshakes) and other
/// paths reach the inner service as they came. What concerns it is, with or without a key.
#[derive(Clone)]
pub struct Verified<C, V> {
    channel: C,
    verifier: V,
}

impl<C: Channel, V: Verify> Verified<C, V> {
    /// `channel`, with each request checked by `verifier` first.
    pub fn new(channel: C, verifier: V) -> Self {
        Self { channel, verifier }
    }
}

impl<C, V: Verify> Verified<C, V> {
    /// `channel`, which is none before it is verified, with each request checked by `verifier`.
    pub(crate) fn own(channel: C, verifier: V) -> Self {
        Self { channel, verifier }
    }

    /// The channel itself.
    pub(crate) fn channel(&self) -> &C {
        &self.channel
    }

    /// Who checks its requests.
    pub(crate) fn verifier(&self) -> &V {
        &self.verifier
    }
}

impl<C: Channel, V: Verify> Channel for Verified<C, V> {
    fn terms(&self, head: &Parts) -> &Terms {
        self.channel.terms(head)
    }

    fn all_terms(&self) -> Vec<&Terms> {
        self.channel.all_terms()
    }

    fn concern(&self, head: &Parts) -> Result<Concern, Refusal> {
        match self.channel.concern(head)? {
            Concern::Pass => Ok(Concern::Pass),
            // A request without a key is verified too; its deliveries then show that it has none.
            Concern::NoKey | Concern::Read => Ok(Concern::Read),
        }
    }

    fn verify(&self, head: &Parts, body: &[u8]) -> Result<(), Refusal> {
        self.verifier.verify(head, body)?;
        self.channel.verify(head, body)
    }

    fn is_verifying(&self, _: &Parts) -> bool {
        true
    }

    fn deliveries(&self, head: &Parts, body: &[u8]) -> Result<Vec<Delivery>, Refusal> {
        self.channel.deliveries(head, body)
    }

    fn on_unknown(&self, head: &Parts) -> OnUnknown {
        self.channel.on_unknown(head)
    }

    fn without(&self, head: &Parts, body: &Bytes, gone: &[&Key]) -> Option<Bytes> {
        self.channel.without(head, body, gone)
    }
}

impl<C: fmt::Debug, V> fmt::Debug for Verified<C, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Verified").field(&self.channel).finish()
    }
}
