//! What an operator sees: what waits, and what is dead.

use std::time::{Duration, SystemTime};

use bytes::Bytes;

use crate::store::queue::turn::Waiting;

/// Names one death of one message, so that undoing it cannot undo a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Death(i64);

impl Death {
    /// The death with this number; for stores, and for an operator's request.
    pub fn new(number: i64) -> Self {
        Self(number)
    }

    /// The number.
    pub fn number(self) -> i64 {
        self.0
    }
}

/// What waits and what is dead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backlog {
    /// Messages that wait or are being handled.
    pub waiting: u64,
    /// Lines with messages.
    pub lines: u64,
    /// Dead messages.
    pub dead: u64,
    /// How long ago the message that waits longest was accepted.
    pub oldest: Option<Duration>,
}

impl Backlog {
    /// Numbers; for stores.
    pub fn new(waiting: u64, lines: u64, dead: u64, oldest: Option<Duration>) -> Self {
        Self {
            waiting,
            lines,
            dead,
            oldest,
        }
    }
}

/// A message that will not be handled unless it is redriven.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// Its death.
    pub death: Death,
    /// How many attempts it had.
    pub attempts: u32,
    /// What went wrong last.
    pub fault: String,
    /// When it was accepted, by the store's clock.
    pub received_at: SystemTime,
    /// When it died, by the store's clock.
    pub died_at: SystemTime,
    /// What the handler was given.
    pub raw: Bytes,
}

impl DeadLetter {
    /// A dead message; for stores.
    pub fn new(death: Death, message: Waiting, died_at: SystemTime) -> Self {
        Self {
            death,
            attempts: message.attempt,
            fault: message.fault.unwrap_or_default(),
            received_at: message.received_at,
            died_at,
            raw: message.raw,
        }
    }
}
