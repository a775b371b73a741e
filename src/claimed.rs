//! What a handler is told about the messages that it runs.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};

use crate::delivery::Delivery;
use crate::error::Error;
use crate::key::{Digits, Key};
use crate::policy::Disposition;
use crate::store::lease::{Lease, Token};
use crate::store::loan::Loan;
use crate::store::queue::arrival::Arrival;

/// A request extension: the messages that this run may handle, and those that it may not.
///
/// A clone is a reference count. It grants nothing after the run has ended.
///
/// ```
/// # use tower_idempotency::Claimed;
/// fn handle(claimed: &Claimed) {
///     for message in claimed.messages() {
///         println!("{} attempt {}", message.key().id(), message.attempt());
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Claimed(Arc<Inner>);

struct Inner {
    by: By,
    messages: Vec<Message>,
    others: Vec<Key>,
    /// The transaction that the run may borrow, where its store lends one.
    loan: Option<Arc<dyn Loan>>,
    told: Mutex<Told>,
}

/// Who claimed. An inbox has keys of its own, so that a layer behind it claims for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Layer,
    Inbox,
}

/// What the handler said while it ran.
#[derive(Default)]
struct Told {
    /// About single messages, by place.
    ends: Vec<Option<Disposition>>,
    /// What is to be put into the outbox with the record of the message at a place.
    effects: Vec<(usize, Arrival)>,
    /// Whether the run has ended: what comes later is not part of it.
    has_ended: bool,
    /// What is to be done once the record is written.
    afterwards: Vec<Afterwards>,
}

/// What is to be done once a run's record is written.
pub(crate) type Afterwards = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;

/// One message that this run may handle.
#[derive(Clone, Debug)]
pub struct Message {
    delivery: Delivery,
    token: Token,
    attempt: u32,
}

impl Claimed {
    pub(crate) fn new(
        by: By,
        messages: Vec<Message>,
        others: Vec<Key>,
        loan: Option<Arc<dyn Loan>>,
    ) -> Self {
        Self(Arc::new(Inner {
            by,
            messages,
            others,
            loan,
            told: Mutex::default(),
        }))
    }

    /// The messages of this request that this run may handle, at least one.
    pub fn messages(&self) -> &[Message] {
        &self.0.messages
    }

    /// The keys of this request's other messages: done before, or running elsewhere. They are cut
    /// out of the body unless the layer was told to pass it whole.
    pub fn others(&self) -> &[Key] {
        &self.0.others
    }

    /// Whether no run of these messages began before: every attempt is the first.
    pub fn is_first(&self) -> bool {
        self.0.messages.iter().all(|message| message.attempt == 1)
    }

    /// Says how one message of the request ends, whatever the answer says about the others.
    ///
    /// Recorded with the run's end. The last word counts. Gives `false` if the key is none of
    /// [`messages`](Self::messages).
    ///
    /// A message that is recorded although the answer is no success is answered to later
    /// repeats with the channel's ack.
    pub fn settle(&self, key: &Key, disposition: Disposition) -> bool {
        let Some(at) = self.0.messages.iter().position(|m| m.key() == key) else {
            return false;
        };
        let mut told = self.told();
        told.ends.resize(self.0.messages.len(), None);
        if let Some(slot) = told.ends.get_mut(at) {
            *slot = Some(disposition);
        }
        true
    }

    /// Whether a layer in front has decided about this key: a second one must leave it alone, or
    /// the request would wait for itself.
    pub(crate) fn decided(&self, key: &Key) -> bool {
        let is_mine = || self.0.messages.iter().any(|message| message.key() == key);
        self.0.by == By::Layer && (is_mine() || self.0.others.contains(key))
    }

    /// Whether the handler gave single messages back: then no success is told to the caller.
    pub(crate) fn gives_some_back(&self) -> bool {
        let told = self.told();
        let gives_back = [Disposition::Release, Disposition::Unknown].map(Some);
        told.ends.iter().any(|said| gives_back.contains(said))
    }

    /// Whether the handler does not know what became of single messages.
    pub(crate) fn leaves_some_unknown(&self) -> bool {
        self.told().ends.contains(&Some(Disposition::Unknown))
    }

    /// What was said about the message at a place.
    pub(crate) fn said(&self, at: usize) -> Option<Disposition> {
        self.told().ends.get(at).copied().flatten()
    }

    /// The transaction that the run may borrow.
    pub(crate) fn loan(&self) -> Option<&Arc<dyn Loan>> {
        self.0.loan.as_ref()
    }

    /// Whether the handler writes in a transaction that is committed with the record: then no
    /// success is told to the caller before.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.loan().is_some_and(|loan| loan.is_begun())
    }

    /// Adds an effect of the message at a place; `effect` is told how many came before it.
    pub(crate) fn add_effect(
        &self,
        at: usize,
        effect: impl FnOnce(usize) -> Result<Arrival, Error>,
    ) -> Result<(), Error> {
        let mut told = self.told();
        if told.has_ended {
            return Err(Error::rejected("the run has ended"));
        }
        let effect = effect(told.effects.len())?;
        told.effects.push((at, effect));
        Ok(())
    }

    /// Ends the run, and takes the effects of the messages that are recorded; the others are
    /// dropped.
    pub(crate) fn take_effects(&self, is_recorded: impl Fn(usize) -> bool) -> Vec<Arrival> {
        let mut told = self.told();
        told.has_ended = true;
        let effects = std::mem::take(&mut told.effects);
        drop(told);
        let recorded = effects.into_iter().filter(|(at, _)| is_recorded(*at));
        recorded.map(|(_, effect)| effect).collect()
    }

    pub(crate) fn add_afterwards(&self, work: Afterwards) {
        self.told().afterwards.push(work);
    }

    /// What is to be done now that the record is written; each once.
    pub(crate) fn take_afterwards(&self) -> Vec<Afterwards> {
        std::mem::take(&mut self.told().afterwards)
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Message {
    pub(crate) fn new(delivery: Delivery, lease: &Lease) -> Self {
        Self::under(delivery, lease.token(), lease.attempt())
    }

    /// A message that is handled in a turn of an inbox.
    pub(crate) fn under(delivery: Delivery, token: Token, attempt: u32) -> Self {
        Self {
            delivery,
            token,
            attempt,
        }
    }

    /// The message as its channel names it.
    pub fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// The message's key.
    pub fn key(&self) -> &Key {
        self.delivery.key()
    }

    /// The fencing token: higher than that of any earlier run, of this message or another. Pass
    /// it on to systems that can refuse a lower one.
    pub fn token(&self) -> Token {
        self.token
    }

    /// Which attempt this is, from 1. A run that was released is not counted.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// A key for one step of handling this message, to pass on to a system that knows keys: the
    /// same for every attempt, in every process and version, and another for each message and step.
    ///
    /// Where a run dies after the step and before its end, the next one asks with the same key, and
    /// that system does it once. 64 hexadecimal digits: SHA-256 over the message's digest and the
    /// step's name. It tells nothing about the message's id.
    ///
    /// ```
    /// # use tower_idempotency::Message;
    /// # fn charge(message: &Message) {
    /// let key = message.step_key("charge");
    /// // POST /charges, Idempotency-Key: {key}
    /// # }
    /// ```
    pub fn step_key(&self, step: &str) -> String {
        let mut hash = Sha256::new();
        hash.update(self.key().digest());
        hash.update(step);
        Digits(&hash.finalize()).to_string()
    }
}

impl fmt::Debug for Claimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claimed")
            .field("messages", &self.0.messages)
            .field("others", &self.0.others)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str, attempt: u32) -> Message {
        let delivery = Delivery::new(Key::new("chat", "ann", &[id]));
        Message::under(delivery, Token::new(attempt.into()), attempt)
    }

    /// Field cases B08, P61.
    #[test]
    fn a_steps_key_is_the_same_for_every_attempt_and_no_other_step() {
        let key = message("1", 1).step_key("charge");
        assert_eq!(message("1", 2).step_key("charge"), key);
        assert_ne!(message("1", 1).step_key("refund"), key);
        assert_ne!(message("2", 1).step_key("charge"), key);
    }

    /// Foreign systems keep these keys: they must not change with a version.
    #[test]
    fn a_steps_key_is_the_same_in_every_version() {
        let key = message("1", 1).step_key("charge");
        assert_eq!(
            key,
            "83b80a969485563c3cfb5596acd36330ff9703c3aae87551e0d1256a03e47095"
        );
    }
}
