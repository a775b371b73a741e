//! What comes: messages, and the lines in which they wait.

use std::fmt;

use bytes::Bytes;

use crate::key::{Conversation, Key};
use crate::record::Keep;
use crate::store::lease::Token;

/// The messages that are handled one after the other: those of one conversation, or a single one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Line([u8; 16]);

impl Line {
    /// The line of a conversation.
    pub fn of_conversation(conversation: &Conversation) -> Self {
        Self::first(conversation.digest())
    }

    /// The line of a message without a conversation.
    pub fn of_key(key: &Key) -> Self {
        Self::first(key.digest())
    }

    fn first(digest: [u8; 32]) -> Self {
        let mut line = [0; 16];
        for (to, from) in line.iter_mut().zip(digest) {
            *to = from;
        }
        Self(line)
    }

    /// The bytes, for a store to keep.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Reads what [`as_bytes`](Self::as_bytes) gave.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, ..] = self.0;
        write!(f, "Line({a:02x}{b:02x}…)")
    }
}

/// Where a message stands among all others of the store: lower is earlier. Never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place(i64);

impl Place {
    /// The place with this number; for stores.
    pub fn new(number: i64) -> Self {
        Self(number)
    }

    /// The number.
    pub fn number(self) -> i64 {
        self.0
    }
}

/// A message that is to be accepted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Arrival {
    /// Its key.
    pub key: Key,
    /// Its conversation, where the channel knows it.
    pub conversation: Option<Conversation>,
    /// How long its key is kept, counted from its acceptance; never less than it takes to be done.
    pub keep: Keep,
    /// What the handler is given, in the inbox's own form.
    pub raw: Bytes,
}

impl Arrival {
    /// A message without a conversation.
    pub fn new(key: Key, keep: Keep, raw: Bytes) -> Self {
        Self {
            key,
            conversation: None,
            keep,
            raw,
        }
    }

    /// Adds the conversation.
    pub fn conversation(mut self, conversation: Conversation) -> Self {
        self.conversation = Some(conversation);
        self
    }

    /// The line in which it waits.
    pub fn line(&self) -> Line {
        match &self.conversation {
            Some(conversation) => Line::of_conversation(conversation),
            None => Line::of_key(&self.key),
        }
    }
}

/// What became of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Accepted {
    /// It is new, and kept.
    New {
        /// Where it stands.
        place: Place,
        /// The turn of its line, if this call began the line and asked for it.
        turn: Option<Token>,
    },
    /// It is a repeat.
    Repeat(Stage),
}

/// How far a message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// It waits, or is being handled.
    Waiting,
    /// It is done.
    Done,
    /// It is dead.
    Dead,
}
