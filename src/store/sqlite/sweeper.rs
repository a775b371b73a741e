//! When the writer sweeps, and how much.

use std::time::{Duration, Instant};

use crate::store::sqlite::batch::Batch;
use crate::store::sqlite::sweep::{self, LONGEST, Rest};

/// The sweeper's timer. It has no thread: the writer asks it between its transactions.
pub(super) struct Sweeper {
    every: Option<Duration>,
    due: Instant,
}

impl Sweeper {
    /// A sweeper that looks at once, and then every so often; `None` is no sweeper.
    pub(super) fn new(every: Option<Duration>) -> Self {
        Self {
            every,
            due: Instant::now(),
        }
    }

    /// How long the writer may wait for calls. `None` is for ever.
    pub(super) fn wait(&self) -> Option<Duration> {
        self.every
            .map(|_| self.due.saturating_duration_since(Instant::now()))
    }

    pub(super) fn is_due(&self) -> bool {
        self.wait().is_some_and(|wait| wait.is_zero())
    }

    /// Nothing is to be swept, or nothing can be.
    pub(super) fn rest(&mut self) {
        if let Some(later) = self
            .every
            .and_then(|every| Instant::now().checked_add(every))
        {
            self.due = later;
        } else {
            self.every = None;
        }
    }

    /// Takes one step at the end of a transaction with calls.
    ///
    /// Twice as many rows may go as came, so that sweeping keeps up with any load; and it takes
    /// about as long as the calls took, so that no call waits for it much longer than for others.
    pub(super) fn step_behind_calls(&mut self, batch: &mut Batch<'_>) {
        let limit = batch.granted().saturating_mul(2).max(LEAST);
        let longest = batch.age().max(LONGEST);
        self.due = Instant::now();
        self.step(batch, limit, longest);
    }

    /// Takes one step while no call waits, and leaves the file to other processes for a moment.
    pub(super) fn step_alone(&mut self, batch: &mut Batch<'_>) {
        self.due = Instant::now() + PAUSE;
        self.step(batch, IDLE, LONGEST);
    }

    fn step(&mut self, batch: &mut Batch<'_>, limit: u64, longest: Duration) {
        match batch.apart(|batch| sweep::step(batch, limit, longest)) {
            Ok(swept) if swept.rest == Rest::Some => {}
            Ok(_) => self.rest(),
            Err(error) => {
                tracing::warn!(%error, "a step of sweeping failed");
                self.rest();
            }
        }
    }
}

/// How many rows a step removes when no call waits.
const IDLE: u64 = 256;

/// How many rows a step removes at least.
const LEAST: u64 = 16;

/// What other processes have between two steps.
const PAUSE: Duration = Duration::from_millis(2);
