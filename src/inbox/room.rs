//! What the two halves of an inbox share: the worker's free places, and the way to it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::store::queue::turn::{Turn, TurnHold};

/// A turn on its way to the worker, with the place that it takes there.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) turn: Turn,
    /// Until when the turn can be counted on.
    pub(crate) until: Instant,
    pub(crate) place: OwnedSemaphorePermit,
}

/// The worker's free places, as the front sees them. There are none before the worker runs and
/// after it was told to stop.
#[derive(Debug)]
pub(crate) struct Room {
    places: Arc<Semaphore>,
    to_worker: UnboundedSender<Given>,
    /// Something waits that was not given to the worker: it is to look.
    pub(crate) look: Arc<Notify>,
    /// Lines wait for longer than they should: what comes fresh must not overtake them.
    is_behind: AtomicBool,
    /// A worker has run, or it was said that none does.
    was_open: Once,
}

impl Room {
    /// A room without places, and the way to its worker, which `look` wakes.
    pub(crate) fn new(look: Arc<Notify>) -> (Self, UnboundedReceiver<Given>) {
        let (to_worker, given) = unbounded_channel();
        let room = Self {
            places: Arc::new(Semaphore::new(0)),
            to_worker,
            look,
            is_behind: AtomicBool::new(false),
            was_open: Once::new(),
        };
        (room, given)
    }

    /// The worker begins, with so many places.
    pub(crate) fn open(&self, places: usize) {
        self.was_open.call_once(|| {});
        self.places.add_permits(places);
    }

    /// Says once that nobody works here, if nobody ever has.
    pub(crate) fn warn_if_never_open(&self) {
        self.was_open.call_once(|| {
            tracing::warn!(
                "check the set-up: an inbox accepts messages and its worker does not run; they \
                 wait for another process, or for this one's `Worker::run`"
            );
        });
    }

    /// The worker takes no more.
    pub(crate) fn close(&self) {
        self.places.close();
    }

    /// Takes places for fresh lines, if there are enough and no others wait too long.
    pub(crate) fn reserve(&self, lines: usize) -> Option<OwnedSemaphorePermit> {
        if self.is_behind.load(Ordering::Relaxed) {
            return None;
        }
        let lines = u32::try_from(lines).ok()?;
        Arc::clone(&self.places).try_acquire_many_owned(lines).ok()
    }

    /// Waits for a free place, and takes up to `most` of those that are free then. `None` once
    /// the room is closed.
    pub(crate) async fn free(&self, most: usize) -> Option<OwnedSemaphorePermit> {
        let mut first = Arc::clone(&self.places).acquire_owned().await.ok()?;
        let more = self.places.available_permits().min(most.saturating_sub(1));
        let more = u32::try_from(more).unwrap_or(0);
        if let Ok(more) = Arc::clone(&self.places).try_acquire_many_owned(more) {
            first.merge(more);
        }
        Some(first)
    }

    /// Hands a turn to the worker, or back to the caller if the worker has ended.
    pub(crate) fn give(&self, given: Given) -> Result<(), TurnHold> {
        let sent = self.to_worker.send(given);
        sent.map_err(|unsent| unsent.0.turn.hold)
    }

    pub(crate) fn set_behind(&self, is_behind: bool) {
        self.is_behind.store(is_behind, Ordering::Relaxed);
    }
}
