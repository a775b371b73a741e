//! What a handler is told about a message that comes from the inbox.

use std::time::SystemTime;

use crate::delivery::Delivery;

/// A request extension: the message that the handler was called for, and how it came.
///
/// Beside it stands [`Claimed`](crate::Claimed), with the same message and the turn's fencing
/// token.
///
/// ```
/// # use tower_idempotency::inbox::Received;
/// fn handle(received: &Received) {
///     let message = received.delivery();
///     println!("{} attempt {}", message.key().id(), received.attempt());
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Received {
    pub(crate) delivery: Delivery,
    pub(crate) attempt: u32,
    pub(crate) at: SystemTime,
    pub(crate) is_verified: bool,
}

impl Received {
    /// The message as its channel names it.
    pub fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// Which attempt this is, from 1. An attempt that its worker did not survive is counted.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// When the message was first received: by the store's clock, or by this machine's if it is
    /// handled right where it came in.
    pub fn first_received_at(&self) -> SystemTime {
        self.at
    }

    /// Whether the channel checked the sender's signature before the message was stored. It is
    /// not checked again: what some senders sign is valid for minutes only.
    pub fn is_verified(&self) -> bool {
        self.is_verified
    }
}
