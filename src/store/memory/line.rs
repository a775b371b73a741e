//! One line of waiting messages.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use crate::key::Key;
use crate::store::lease::Token;
use crate::store::memory::moment::Moment;
use crate::store::queue::arrival::Place;
use crate::store::queue::turn::{Behind, Waiting};

/// The messages of a line, and who has its turn. It exists as long as it holds messages, or
/// somebody has its turn.
#[derive(Debug)]
pub(super) struct LineRow {
    messages: BTreeMap<Place, Message>,
    turn: Option<Token>,
    /// When the turn may be taken: now, at a retry, or when its lease lapses.
    due: Moment,
    /// Whether everybody waits until `due` for the first message.
    is_held: bool,
    /// How often the turn lapsed since a message last ended.
    lapses: u32,
}

/// A message that waits.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) key: Key,
    /// How many attempts have failed.
    pub(super) failures: u32,
    pub(super) received_at: SystemTime,
    pub(super) fault: Option<String>,
    pub(super) raw: Bytes,
    /// When it may be tried again, where others may pass it.
    deferred: Option<Moment>,
}

impl Message {
    pub(super) fn new(key: Key, received_at: SystemTime, raw: Bytes) -> Self {
        Self {
            key,
            failures: 0,
            received_at,
            fault: None,
            raw,
            deferred: None,
        }
    }

    /// The message as one that has not been tried; what went wrong last stays to be read.
    pub(super) fn anew(self) -> Self {
        Self {
            failures: 0,
            deferred: None,
            ..self
        }
    }

    fn is_ready(&self, now: Moment) -> bool {
        self.deferred.is_none_or(|due| due <= now)
    }
}

impl LineRow {
    pub(super) fn new(now: Moment) -> Self {
        Self {
            messages: BTreeMap::new(),
            turn: None,
            due: now,
            is_held: false,
            lapses: 0,
        }
    }

    pub(super) fn due(&self) -> Moment {
        self.due
    }

    pub(super) fn is_turn(&self, token: Token) -> bool {
        self.turn == Some(token)
    }

    pub(super) fn is_over(&self) -> bool {
        self.messages.is_empty() && self.turn.is_none()
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = (&Place, &Message)> {
        self.messages.iter()
    }

    /// A message comes; a line in which all others are only deferred is due for it.
    pub(super) fn join(&mut self, place: Place, message: Message, now: Moment) {
        self.messages.insert(place, message);
        if self.turn.is_none() && !self.is_held {
            self.due = self.due.min(now);
        }
    }

    pub(super) fn lend(&mut self, token: Token, until: Moment) {
        if self.turn.is_some() {
            self.lapses += 1;
        }
        self.turn = Some(token);
        self.due = until;
        self.is_held = false;
    }

    pub(super) fn renew(&mut self, until: Moment) {
        self.due = until;
    }

    pub(super) fn remove(&mut self, place: Place) -> Option<Message> {
        self.lapses = 0;
        self.messages.remove(&place)
    }

    /// All messages go; the turn, if somebody has it, stays.
    pub(super) fn clear(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.messages).into_values().collect()
    }

    /// A message has failed and is to be tried again.
    pub(super) fn put_off(
        &mut self,
        place: Place,
        (attempt, fault): (u32, &str),
        (until, behind): (Moment, Behind),
    ) {
        self.lapses = 0;
        if let Some(message) = self.messages.get_mut(&place) {
            message.failures = attempt;
            message.fault = Some(fault.to_owned());
            message.deferred = (behind == Behind::Pass).then_some(until);
        }
        if behind == Behind::Wait {
            self.turn = None;
            self.is_held = true;
            self.due = until;
        }
    }

    /// The turn ends.
    pub(super) fn give_back(&mut self, now: Moment) {
        self.turn = None;
        self.is_held = false;
        let soonest = self.messages.values().map(|message| message.deferred);
        self.due = soonest.map(|due| due.unwrap_or(now)).min().unwrap_or(now);
    }

    /// The first messages that may be handled now.
    pub(super) fn ready(&self, most: usize, now: Moment) -> Vec<Waiting> {
        let ready = self.messages.iter().filter(|(_, m)| m.is_ready(now));
        let mut lapses = self.lapses;
        ready
            .take(most)
            .map(|(place, message)| waiting(*place, message, std::mem::take(&mut lapses)))
            .collect()
    }

    /// How long after the message was due the line was taken.
    pub(super) fn overdue(&self, now: Moment) -> Duration {
        self.due.until(now)
    }
}

/// The message as its handler, or an operator, is told of it.
pub(super) fn waiting(place: Place, message: &Message, lapses: u32) -> Waiting {
    let attempt = message.failures.saturating_add(lapses).saturating_add(1);
    Waiting::new(place, message.received_at, message.raw.clone())
        .tried(attempt, message.fault.clone())
}
