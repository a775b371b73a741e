//! The right to run one message, and how it ends.

use std::sync::Arc;

use crate::key::Key;
use crate::record::{Keep, Record};

/// A fencing token: higher than every token that the store gave before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(i64);

impl Token {
    /// The token with this number; for stores.
    pub fn new(number: i64) -> Self {
        Self(number)
    }

    /// The number, to pass on to systems that order by it.
    pub fn number(self) -> i64 {
        self.0
    }
}

/// The right to run one message. Spent by value: recorded, or released.
///
/// A lease that is dropped lapses: the message is run by the next repeat, after the lease's time.
#[derive(Debug)]
#[must_use = "a lease that is neither recorded nor released blocks its key until it lapses"]
pub struct Lease {
    hold: Hold,
    attempt: u32,
}

impl Lease {
    /// A lease; for stores.
    pub fn new(key: Key, token: Token, attempt: u32) -> Self {
        Self {
            hold: Hold { key, token },
            attempt,
        }
    }

    /// The message's key.
    pub fn key(&self) -> &Key {
        &self.hold.key
    }

    /// The fencing token.
    pub fn token(&self) -> Token {
        self.hold.token
    }

    /// Which attempt this is, from 1: how many runs began before this one without ending.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Names the lease, for renewing it.
    pub fn hold(&self) -> Hold {
        self.hold.clone()
    }

    /// Spends the lease: the message is done, and this is its record.
    pub fn record(self, record: Arc<Record>, keep: Keep) -> Settlement {
        Settlement {
            hold: self.hold,
            end: End::Record { record, keep },
        }
    }

    /// Spends the lease: the message is not done, and the next repeat may run it.
    pub fn release(self) -> Settlement {
        Settlement {
            hold: self.hold,
            end: End::Release,
        }
    }
}

/// The name of a lease: a key and the token under which it runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Hold {
    /// The message's key.
    pub key: Key,
    /// The lease's token.
    pub token: Token,
}

impl Hold {
    /// Names a lease.
    pub fn new(key: Key, token: Token) -> Self {
        Self { key, token }
    }
}

/// How one run ends. May be sent to the store more than once.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settlement {
    /// Whose run ends.
    pub hold: Hold,
    /// How it ends.
    pub end: End,
}

/// The two ways for a run to end.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum End {
    /// The message is done.
    Record {
        /// What a repeat is given.
        record: Arc<Record>,
        /// For how long.
        keep: Keep,
    },
    /// The message is not done; the next repeat may run it.
    Release,
}

/// What became of a settlement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Settled {
    /// It is in force, by this call or an earlier one.
    Applied,
    /// It changed nothing: another run took over, or the row is gone.
    Superseded,
}

/// What became of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// The lease runs on from now.
    Renewed,
    /// Another run took over, or the row is gone or done.
    Lost,
}
