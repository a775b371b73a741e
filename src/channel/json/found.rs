//! The messages that were found in a document.

use std::collections::HashSet;
use std::time::SystemTime;

use foldhash::quality::RandomState;
use smallvec::SmallVec;

use crate::channel::contract::Refusal;
use crate::channel::json::fault::Spans;
use crate::channel::json::tree::Node;
use crate::channel::text::{LONGEST, too_long};
use crate::delivery::Delivery;
use crate::key::{Conversation, Key};

/// A message as a document names it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Message<'a> {
    /// The account or user that the id is unique in.
    pub(crate) scope: &'a str,
    /// The parts of its id.
    pub(crate) id: &'a [&'a str],
    /// The conversation that it belongs to.
    pub(crate) conversation: Option<&'a str>,
    /// The sender's timestamp.
    pub(crate) sent_at: Option<SystemTime>,
}

impl<'a> Message<'a> {
    /// The same message by an id of these parts.
    pub(crate) fn named(self, id: &'a [&'a str]) -> Self {
        Self { id, ..self }
    }
}

/// The messages found so far, in order of appearance.
#[derive(Debug)]
pub(crate) struct Found<'c> {
    channel: &'c str,
    deliveries: Vec<Delivery>,
    /// The entry of the tree that each delivery stands in, if positions are kept.
    entries: Vec<u32>,
    spans: Spans,
    buffer: String,
}

/// Room for a key, so that its first one is put together without growing.
const KEY: usize = 256;

/// Up to here each key is compared with each other; above, hashing costs less.
const FEW: usize = 8;

impl<'c> Found<'c> {
    /// Nothing yet, for the channel of that name.
    pub(crate) fn new(channel: &'c str, spans: Spans) -> Self {
        Self {
            channel,
            deliveries: Vec::new(),
            entries: Vec::new(),
            spans,
            buffer: String::with_capacity(KEY),
        }
    }

    /// Adds a message. `place` is the element of an array that goes if the message is cut out;
    /// anything else cannot be cut.
    pub(crate) fn add(&mut self, place: Node<'_>, message: Message<'_>) -> Result<(), Refusal> {
        let texts = message.id.iter().chain(&message.conversation);
        if texts
            .chain([&message.scope])
            .any(|text| text.len() > LONGEST)
        {
            return Err(too_long());
        }
        let key = Key::written_in(&mut self.buffer, self.channel, message.scope, message.id);
        let mut delivery = Delivery::new(key);
        if let Some(id) = message.conversation {
            delivery = delivery.conversation(self.conversation(message.scope, id));
        }
        if let Some(at) = message.sent_at {
            delivery = delivery.sent_at(at);
        }
        self.deliveries.push(delivery);
        if self.spans == Spans::Keep {
            self.entries.push(place.entry());
        }
        Ok(())
    }

    /// Adds a message whose id has these parts, unless one of them is missing: it has no id then.
    pub(crate) fn add_whole<const N: usize>(
        &mut self,
        place: Node<'_>,
        id: [Option<&str>; N],
        message: Message<'_>,
    ) -> Result<(), Refusal> {
        let id: Option<SmallVec<[&str; 6]>> = id.into_iter().collect();
        match id {
            Some(id) => self.add(place, message.named(&id)),
            None => Ok(()),
        }
    }

    /// The conversation of the last message, if it is that one: people write several in a row.
    fn conversation(&mut self, scope: &str, id: &str) -> Conversation {
        let last = self.deliveries.last().and_then(Delivery::in_conversation);
        match last {
            Some(last) if last.id() == id && last.scope() == scope => last.clone(),
            Some(_) | None => Conversation::written_in(&mut self.buffer, self.channel, scope, id),
        }
    }

    /// The deliveries, each key once.
    pub(crate) fn unique(mut self) -> Vec<Delivery> {
        if self.deliveries.len() <= FEW {
            let mut few = Vec::with_capacity(self.deliveries.len());
            for delivery in self.deliveries {
                let is_other = |it: &Delivery| it.key() != delivery.key();
                few.iter().all(is_other).then(|| few.push(delivery));
            }
            return few;
        }
        let hasher = RandomState::default();
        let mut seen = HashSet::with_capacity_and_hasher(self.deliveries.len(), hasher);
        let keys = self.deliveries.iter().map(Delivery::key);
        let first: Vec<bool> = keys.map(|key| seen.insert(key)).collect();
        if first.contains(&false) {
            let mut first = first.into_iter();
            self.deliveries.retain(|_| first.next() == Some(true));
        }
        self.deliveries
    }

    /// Each delivery with the entry that it stands in.
    pub(crate) fn places(&self) -> impl Iterator<Item = (&Key, u32)> {
        let keys = self.deliveries.iter().map(Delivery::key);
        keys.zip(self.entries.iter().copied())
    }
}
