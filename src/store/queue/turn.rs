//! Turns, and how their messages end.

use std::time::{Duration, SystemTime};

use bytes::Bytes;

use crate::store::lease::Token;
use crate::store::queue::arrival::{Line, Place};

/// The right to handle a line's messages.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Turn {
    /// Names the turn.
    pub hold: TurnHold,
    /// How long ago the line was due.
    pub overdue: Duration,
    /// Its first messages. None, if they went meanwhile: then the turn is to be given back.
    pub messages: Vec<Waiting>,
}

impl Turn {
    /// A turn; for stores.
    pub fn new(hold: TurnHold, overdue: Duration, messages: Vec<Waiting>) -> Self {
        Self {
            hold,
            overdue,
            messages,
        }
    }
}

/// The name of a turn: a line, and the token under which its messages are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct TurnHold {
    /// The line.
    pub line: Line,
    /// The turn's token.
    pub token: Token,
}

impl TurnHold {
    /// Names a turn.
    pub fn new(line: Line, token: Token) -> Self {
        Self { line, token }
    }
}

/// A message that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiting {
    /// Where it stands.
    pub place: Place,
    /// Which attempt its next run is, from 1.
    pub attempt: u32,
    /// When it was accepted, by the store's clock.
    pub received_at: SystemTime,
    /// What went wrong last, if something did.
    pub fault: Option<String>,
    /// What the handler is given.
    pub raw: Bytes,
}

impl Waiting {
    /// A message that has not been tried; for stores.
    pub fn new(place: Place, received_at: SystemTime, raw: Bytes) -> Self {
        Self {
            place,
            attempt: 1,
            received_at,
            fault: None,
            raw,
        }
    }

    /// With the attempts and the last fault of a message that was tried; for stores.
    pub fn tried(mut self, attempt: u32, fault: Option<String>) -> Self {
        self.attempt = attempt;
        self.fault = fault;
        self
    }
}

/// How a message of a turn ended, and how the turn goes on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// Whose message it is.
    pub hold: TurnHold,
    /// The message, and its end; `None` where only the turn is given back.
    pub ended: Option<(Place, Ended)>,
    /// What becomes of the turn.
    pub then: Then,
}

impl Report {
    /// The message at `place` has ended.
    pub fn new(hold: TurnHold, place: Place, ended: Ended, then: Then) -> Self {
        Self {
            hold,
            ended: Some((place, ended)),
            then,
        }
    }

    /// The turn is given back: the line is due at once, and no attempt is counted.
    pub fn give_back(hold: TurnHold) -> Self {
        Self {
            hold,
            ended: None,
            then: Then::GiveBack,
        }
    }
}

/// How a message of a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// It is done: the message goes, its key stays.
    Done,
    /// It is done: the message goes, and its raw request stays with its key.
    Kept,
    /// It is to be handled again.
    Later {
        /// When, from now.
        after: Duration,
        /// Which attempt has failed.
        attempt: u32,
        /// What went wrong.
        fault: String,
        /// Whether the line waits for it.
        behind: Behind,
    },
    /// It will not be handled again.
    Dead {
        /// Which attempt was the last.
        attempt: u32,
        /// Why.
        fault: String,
    },
}

/// What the messages behind one that failed do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Behind {
    /// They wait until it is done or dead. The turn ends.
    #[default]
    Wait,
    /// They pass it. The turn goes on.
    Pass,
}

/// What becomes of a turn after a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Then {
    /// It goes on; its holder has the line's next message already.
    GoOn,
    /// It goes on with up to so many further messages, or ends if there are none.
    Read(usize),
    /// It ends; the line is due at once if it holds messages.
    GiveBack,
}

/// What follows a report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Onward {
    /// The turn goes on, with the messages that were asked for.
    Next(Vec<Waiting>),
    /// The turn has ended.
    Ended,
    /// The turn is somebody else's, or had ended before: the report changed nothing.
    Lost,
}
