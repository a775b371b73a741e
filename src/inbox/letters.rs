//! What an operator sees and does: what waits, what is dead.

use std::time::SystemTime;

use bytes::Bytes;
use http::request::Parts;

use crate::delivery::Delivery;
use crate::error::Error;
use crate::inbox::raw::RawRequest;
use crate::key::Key;
use crate::store::queue::backlog::{Backlog, DeadLetter, Death};
use crate::store::queue::contract::Queue;
use crate::store::queue::turn::Waiting;
use crate::watch::emit::{gauge, gauge_time};
use crate::watch::metric::{INBOX_DEAD, INBOX_LINES, INBOX_OLDEST_SECONDS, INBOX_WAITING};

/// What waits in a store's inbox, and what is dead: for operators.
///
/// It concerns the whole store, whichever process accepted a message.
#[derive(Clone, Debug)]
pub struct Letters<Q> {
    store: Q,
}

/// A message with the request that brought it, as an operator sees it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Letter {
    /// The death of a dead message; `None` for one that waits.
    pub death: Option<Death>,
    /// How many attempts it had.
    pub attempts: u32,
    /// What went wrong last, if something did.
    pub fault: Option<String>,
    /// When it was accepted, by the store's clock.
    pub received_at: SystemTime,
    /// When it died, by the store's clock.
    pub died_at: Option<SystemTime>,
    /// The message and its request; the error says why they cannot be read.
    pub request: Result<Stored, Error>,
}

/// The request that brought a message.
#[derive(Debug)]
#[non_exhaustive]
pub struct Stored {
    /// The message as its channel names it.
    pub delivery: Delivery,
    /// The request's head.
    pub head: Parts,
    /// The request's body.
    pub body: Bytes,
}

impl<Q: Queue> Letters<Q> {
    /// The letters of a store.
    pub fn new(store: Q) -> Self {
        Self { store }
    }

    /// How many messages wait and are dead. Costs the store a look at everything that waits.
    ///
    /// Sets the gauges of [`watch`](crate::watch), too.
    ///
    /// # Errors
    /// If the store cannot tell.
    pub async fn backlog(&self) -> Result<Backlog, Error> {
        let backlog = self.store.backlog().await?;
        gauge_backlog(&backlog);
        Ok(backlog)
    }

    /// Up to `limit` messages that wait or are being handled, the first ones of all first.
    ///
    /// # Errors
    /// If the store cannot tell.
    pub async fn waiting(&self, limit: usize) -> Result<Vec<Letter>, Error> {
        let waiting = self.store.waiting(limit).await?;
        Ok(waiting.into_iter().map(of_waiting).collect())
    }

    /// Up to `limit` dead messages behind `after`, in the order of their deaths.
    ///
    /// # Errors
    /// If the store cannot tell.
    pub async fn dead(&self, after: Option<Death>, limit: usize) -> Result<Vec<Letter>, Error> {
        let dead = self.store.dead(after, limit).await?;
        Ok(dead.into_iter().map(of_dead).collect())
    }

    /// The request of a message that is done, where the inbox
    /// [keeps](crate::inbox::Inbox::keep_requests) them and its key has not gone yet.
    ///
    /// # Errors
    /// If the store cannot tell, or the request cannot be read.
    pub async fn kept(&self, key: &Key) -> Result<Option<Stored>, Error> {
        let raw = self.store.kept(key).await?;
        raw.as_ref().map(stored).transpose()
    }

    /// Undoes one death: the message is handled again, behind those that wait, with all its
    /// attempts before it. `false` if this death was undone before; calling it twice redrives
    /// once.
    ///
    /// # Errors
    /// If the store cannot tell; asking again is harmless.
    pub async fn redrive(&self, death: Death) -> Result<bool, Error> {
        Ok(self.store.redrive(&[death]).await? == 1)
    }

    /// Undoes all deaths up to now; gives how many.
    ///
    /// # Errors
    /// If the store cannot tell; what was redriven until then is.
    pub async fn redrive_all(&self) -> Result<u64, Error> {
        let mut redriven = 0;
        let mut after = None;
        loop {
            let page = self.store.dead(after, PAGE).await?;
            let deaths: Vec<Death> = page.iter().map(|letter| letter.death).collect();
            let Some(last) = deaths.last() else {
                return Ok(redriven);
            };
            after = Some(*last);
            redriven += self.store.redrive(&deaths).await?;
        }
    }

    /// Drops one dead message. Its key stays, so that its repeats are still acknowledged and
    /// dropped. `false` if there is no such death.
    ///
    /// # Errors
    /// If the store cannot tell; asking again is harmless.
    pub async fn bury(&self, death: Death) -> Result<bool, Error> {
        Ok(self.store.bury(&[death]).await? == 1)
    }
}

/// Sets the gauges of what waits and what is dead.
pub(crate) fn gauge_backlog(backlog: &Backlog) {
    gauge(INBOX_WAITING, backlog.waiting);
    gauge(INBOX_LINES, backlog.lines);
    gauge(INBOX_DEAD, backlog.dead);
    gauge_time(INBOX_OLDEST_SECONDS, backlog.oldest.unwrap_or_default());
}

const PAGE: usize = 100;

fn of_waiting(waiting: Waiting) -> Letter {
    Letter {
        death: None,
        attempts: waiting.attempt.saturating_sub(1),
        fault: waiting.fault,
        received_at: waiting.received_at,
        died_at: None,
        request: stored(&waiting.raw),
    }
}

fn of_dead(letter: DeadLetter) -> Letter {
    Letter {
        death: Some(letter.death),
        attempts: letter.attempts,
        fault: Some(letter.fault),
        received_at: letter.received_at,
        died_at: Some(letter.died_at),
        request: stored(&letter.raw),
    }
}

fn stored(raw: &Bytes) -> Result<Stored, Error> {
    let raw = RawRequest::read(raw)?;
    Ok(Stored {
        delivery: raw.delivery,
        head: raw.head,
        body: raw.body,
    })
}
