//! The messages that were found in a document.

use std::collections::HashSet;
use std::time::SystemTime;

use crate::channel::contract::Refusal;
use crate::channel::json::tree::Node;
use crate::channel::text::check;
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

/// The messages found so far, in order of appearance.
#[derive(Debug)]
pub(crate) struct Found<'c> {
    channel: &'c str,
    deliveries: Vec<Delivery>,
    /// The entry of the tree that each delivery stands in.
    entries: Vec<u32>,
}

impl<'c> Found<'c> {
    /// Nothing yet, for the channel of that name.
    pub(crate) fn new(channel: &'c str) -> Self {
        Self {
            channel,
            deliveries: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// Adds a message. `place` is the element of an array that goes if the message is cut out;
    /// anything else cannot be cut.
    pub(crate) fn add(&mut self, place: Node<'_>, message: Message<'_>) -> Result<(), Refusal> {
        let Message {
            scope,
            id,
            conversation,
            sent_at,
        } = message;
        for text in [scope].iter().chain(id).chain(&conversation) {
            check(text)?;
        }
        let mut delivery = Delivery::new(Key::new(self.channel, scope, id));
        if let Some(id) = conversation {
            delivery = delivery.conversation(Conversation::new(self.channel, scope, id));
        }
        if let Some(at) = sent_at {
            delivery = delivery.sent_at(at);
        }
        self.deliveries.push(delivery);
        self.entries.push(place.entry());
        Ok(())
    }

    /// The deliveries, each key once.
    pub(crate) fn unique(mut self) -> Vec<Delivery> {
        if self.deliveries.len() > 1 {
            let mut seen = HashSet::with_capacity(self.deliveries.len());
            self.deliveries
                .retain(|delivery| seen.insert(delivery.key().clone()));
        }
        self.deliveries
    }

    /// Each delivery with the entry that it stands in.
    pub(crate) fn places(&self) -> impl Iterator<Item = (&Key, u32)> {
        let keys = self.deliveries.iter().map(Delivery::key);
        keys.zip(self.entries.iter().copied())
    }
}
