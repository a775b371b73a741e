//! What is to happen once a run is recorded.

use std::time::Duration;

use bytes::Bytes;
use http::Request;

use crate::claimed::{Claimed, Message};
use crate::delivery::Delivery;
use crate::effects::outbox::CHANNEL;
use crate::error::Error;
use crate::inbox::raw::RawRequest;
use crate::key::Key;
use crate::record::Keep;
use crate::store::queue::arrival::Arrival;

impl Claimed {
    /// Has an effect happen once this message is done: puts `payload` into the store's outbox with
    /// the record of the run, in one commit. The worker of an [`Outbox`](crate::effects::Outbox)
    /// handles it from there.
    ///
    /// For a run with several messages it is an effect of the first;
    /// [`enqueue_for`](Self::enqueue_for) names another. Nothing is enqueued by a run that fails, is
    /// rolled back or loses its lease, nor by a replay or a repeat. `name` says which effect it is:
    /// letters, digits, `-`, `_`, `.` and `/`. The payload is bytes; JSON is
    /// `serde_json::to_vec(&value)?`.
    ///
    /// # Errors
    /// [Misconfigured](Error::is_misconfigured) if the layer's store has no outbox, or the name has
    /// other characters.
    ///
    /// ```
    /// # use tower_idempotency::{Claimed, Error};
    /// # fn handle(claimed: &Claimed) -> Result<(), Error> {
    /// claimed.enqueue("notify", r#"{"user":"ann"}"#)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn enqueue(&self, name: &str, payload: impl Into<Bytes>) -> Result<(), Error> {
        self.enqueue_at(0, name, &payload.into())
    }

    /// [`enqueue`](Self::enqueue), for the message with this key: the effect happens if that message
    /// is recorded, whatever becomes of the others.
    ///
    /// # Errors
    /// As [`enqueue`](Self::enqueue), and if the key is none of
    /// [`messages`](Self::messages).
    pub fn enqueue_for(
        &self,
        key: &Key,
        name: &str,
        payload: impl Into<Bytes>,
    ) -> Result<(), Error> {
        let at = self.messages().iter().position(|m| m.key() == key);
        let at = at.ok_or_else(|| Error::misconfigured("the key is none of this run's"))?;
        self.enqueue_at(at, name, &payload.into())
    }

    fn enqueue_at(&self, at: usize, name: &str, payload: &Bytes) -> Result<(), Error> {
        let message = self.messages().get(at).filter(|_| self.loan().is_some());
        let message = message.ok_or_else(|| {
            Error::misconfigured(
                "the layer's store has no outbox: use PostgresStore or SqliteStore",
            )
        })?;
        self.add_effect(at, |nth| effect(message, nth, name, payload))
    }

    /// Has `work` done once the record of this run is written: best effort, in a task of its own.
    ///
    /// For handlers that cannot use the transaction. It runs in this process after the store has
    /// confirmed the record, and for this run only, so never for a replay, a repeat, a failure or
    /// a run that lost its lease. A process that dies in between never runs it, and nothing does
    /// later: what must happen belongs into the outbox. The caller does not wait for it;
    /// [`drain`](crate::IdempotencyLayer::drain) does. At the end of an inbox's worker nobody does.
    ///
    /// ```
    /// # use tower_idempotency::Claimed;
    /// # fn handle(claimed: &Claimed) {
    /// claimed.after_recorded(|| async { println!("done, and on record") });
    /// # }
    /// ```
    pub fn after_recorded<W>(&self, work: impl FnOnce() -> W + Send + 'static)
    where
        W: Future<Output = ()> + Send + 'static,
    {
        self.add_afterwards(Box::new(|| Box::pin(work())));
    }
}

/// The `nth` effect of a run. Its key is its own: another attempt of the run has another token.
fn effect(message: &Message, nth: usize, name: &str, payload: &Bytes) -> Result<Arrival, Error> {
    let is_plain = |c: u8| c.is_ascii_alphanumeric() || b"-_./".contains(&c);
    if name.is_empty() || !name.bytes().all(is_plain) {
        return Err(Error::misconfigured(format!(
            "the name of an effect is made of letters, digits, `-`, `_`, `.` and `/`: {name:?}"
        )));
    }
    let of = message.key();
    let (token, nth) = (message.token().number().to_string(), nth.to_string());
    let parts = [of.channel(), of.scope(), of.id(), &token, &nth];
    let key = Key::new(CHANNEL, name, &parts);
    let mut delivery = Delivery::new(key.clone());
    if let Some(conversation) = message.delivery().in_conversation() {
        delivery = delivery.conversation(conversation.clone());
    }
    let request = Request::post(format!("/{name}")).body(());
    let (head, ()) = request
        .map_err(|e| Error::misconfigured("the effect's name makes no path").because(e))?
        .into_parts();
    let raw = RawRequest::write(&delivery, true, (&head, payload), &[])?;
    let arrival = Arrival::new(key, KEEP, raw);
    Ok(match delivery.in_conversation() {
        Some(conversation) => arrival.conversation(conversation.clone()),
        None => arrival,
    })
}

/// An effect that is done is needed no longer: nobody repeats it. A day is for looking at it.
const KEEP: Keep = Keep::For(Duration::from_hours(24));
