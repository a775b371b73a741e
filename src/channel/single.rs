//! Requests that carry one message each.

use std::borrow::Cow;
use std::time::SystemTime;

use http::request::Parts;

use crate::channel::contract::{Reason, Refusal, Terms};
use crate::channel::scope::Scope;
use crate::channel::text::check;
use crate::delivery::Delivery;
use crate::key::{Conversation, Key};

/// The message of a request, as its channel reads it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Single<'a> {
    /// The account or user that the id is unique in.
    pub(crate) scope: &'a str,
    /// The parts of its id.
    pub(crate) id: &'a [&'a str],
    /// The conversation that it belongs to.
    pub(crate) conversation: Option<&'a str>,
    /// The sender's timestamp.
    pub(crate) sent_at: Option<SystemTime>,
}

impl Single<'_> {
    /// The deliveries of a request that carries just this message.
    ///
    /// # Errors
    /// If one of its texts is none that a sender makes.
    pub(crate) fn delivery(self, channel: &str) -> Result<Vec<Delivery>, Refusal> {
        for text in [self.scope].iter().chain(self.id).chain(&self.conversation) {
            check(text)?;
        }
        let mut delivery = Delivery::new(Key::new(channel, self.scope, self.id));
        if let Some(id) = self.conversation {
            delivery = delivery.conversation(Conversation::new(channel, self.scope, id));
        }
        if let Some(at) = self.sent_at {
            delivery = delivery.sent_at(at);
        }
        Ok(vec![delivery])
    }
}

/// What the channels for senders of one's own have in common: one message in a request, its scope
/// and conversation wherever they are.
#[derive(Clone, Debug)]
pub(crate) struct Custom {
    pub(crate) terms: Terms,
    pub(crate) scope: Option<Scope>,
    pub(crate) conversation: Option<Scope>,
    pub(crate) missing: Missing,
}

/// What becomes of a request without an id.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Missing {
    Pass,
    Refuse,
}

impl Custom {
    /// The channel called `name`: a webhook, unscoped, not required.
    pub(crate) fn named(name: &str) -> Self {
        Self {
            terms: Terms::webhook(name),
            scope: None,
            conversation: None,
            missing: Missing::Pass,
        }
    }

    /// The deliveries of a request whose id has these parts; `None` if one of them is not there.
    pub(crate) fn deliveries<T: AsRef<str>>(
        &self,
        head: &Parts,
        body: &[u8],
        id: Option<Vec<T>>,
    ) -> Result<Vec<Delivery>, Refusal> {
        let Some(id) = id else {
            return match self.missing {
                Missing::Pass => Ok(Vec::new()),
                Missing::Refuse => Err(Refusal::new(Reason::MissingKey, "the request has no id")),
            };
        };
        let scope = match &self.scope {
            Some(scope) => scope.of(head, body)?,
            None => Cow::Borrowed(""),
        };
        let conversation = self.conversation.as_ref();
        let conversation = conversation.and_then(|it| it.look(head, body));
        let id: Vec<&str> = id.iter().map(AsRef::as_ref).collect();
        let single = Single {
            scope: &scope,
            id: &id,
            conversation: conversation.as_deref(),
            sent_at: None,
        };
        single.delivery(&self.terms.channel)
    }
}

/// The options of a channel for senders of one's own, whose first field is its [`Custom`].
macro_rules! options {
    () => {
        /// The channel, with each request checked by `verifier` before it is read. Called last.
        pub fn verified_by<V: Verify>(self, verifier: V) -> Verified<Self, V> {
            Verified::own(self, verifier)
        }

        /// The channel, which believes every request: whoever guesses an id suppresses the
        /// message. For requests that were verified in front of the layer. Called last.
        pub fn unverified(self) -> Unverified<Self> {
            Unverified::new(self)
        }

        /// The account or user that the ids are unique in. Default: none, the ids are unique in
        /// the whole channel. A message whose scope is missing is refused (400).
        pub fn scope(mut self, scope: Scope) -> Self {
            self.custom.scope = Some(scope);
            self
        }

        /// The conversation that a message belongs to. Default: none. A message that names none
        /// has none.
        pub fn conversation(mut self, conversation: Scope) -> Self {
            self.custom.conversation = Some(conversation);
            self
        }

        /// Refuses requests without an id (400). Default: they pass, unprotected.
        pub fn required(mut self) -> Self {
            self.custom.missing = Missing::Refuse;
            self
        }

        /// How long a repeat waits for the first run. Default: 4 s. Choose less than the sender
        /// does.
        pub fn wait(mut self, limit: Duration) -> Self {
            self.custom.terms.wait = limit;
            self
        }

        /// How long records are kept. Default: eight days. Choose longer than the sender repeats.
        pub fn keep(mut self, keep: Keep) -> Self {
            self.custom.terms.keep = keep;
            self
        }

        /// Whether the sender reads the body of the answer. Default: [`Reply::Ack`], it does not.
        pub fn reply(mut self, reply: Reply) -> Self {
            self.custom.terms.reply = reply;
            self
        }

        /// The answer that tells the sender "received". Default: 200 without a body.
        pub fn ack(mut self, ack: Ack) -> Self {
            self.custom.terms.ack = ack;
            self
        }
    };
}

pub(crate) use options;
