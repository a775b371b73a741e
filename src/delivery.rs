//! One message (or event) in a request.

use std::time::SystemTime;

use crate::key::{Conversation, Key};

/// One message in a request, as its channel names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    key: Key,
    conversation: Option<Conversation>,
    sent_at: Option<SystemTime>,
}

impl Delivery {
    /// A delivery that is known by `key`.
    pub fn new(key: Key) -> Self {
        Self {
            key,
            conversation: None,
            sent_at: None,
        }
    }

    /// The conversation that it belongs to. Default: none.
    pub fn conversation(mut self, conversation: Conversation) -> Self {
        self.conversation = Some(conversation);
        self
    }

    /// The sender's own timestamp. Default: none.
    ///
    /// For the application and for measuring how late a repeat comes. No decision rests on it.
    pub fn sent_at(mut self, at: SystemTime) -> Self {
        self.sent_at = Some(at);
        self
    }

    /// The name of the message.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The conversation, where the channel knows it.
    pub fn in_conversation(&self) -> Option<&Conversation> {
        self.conversation.as_ref()
    }

    /// The sender's timestamp, where the channel carries one.
    pub fn when_sent(&self) -> Option<SystemTime> {
        self.sent_at
    }
}
