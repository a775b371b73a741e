//! The thread that writes.

use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::store::sqlite::batch::Batch;
use crate::store::sqlite::fault::Fault;
use crate::store::sqlite::job::BoxJob;
use crate::store::sqlite::lent::{Call, Lent};
use crate::store::sqlite::post::{self, Message};
use crate::store::sqlite::sweep;
use crate::store::sqlite::sweeper::Sweeper;

/// Gathers calls and performs them, many in one transaction.
///
/// It takes what waits and does not wait for more: a lone call goes at once, and what comes while
/// a transaction is written to the disk goes together in the next.
pub(super) struct Writer {
    connection: Connection,
    calls: Receiver<Message<Call>>,
    sweeper: Sweeper,
    /// How long a run's transaction may lie idle.
    idle_limit: Duration,
}

/// What follows a transaction.
enum Next {
    More,
    /// A run has a transaction of its own.
    Lend(Lent),
    /// The last handle is gone.
    End,
    /// A handle asked for the end, and waits for it.
    Stop(oneshot::Sender<()>),
}

impl Writer {
    pub(super) fn new(
        connection: Connection,
        calls: Receiver<Message<Call>>,
        sweeper: Sweeper,
        idle_limit: Duration,
    ) -> Self {
        Self {
            connection,
            calls,
            sweeper,
            idle_limit,
        }
    }

    /// Serves until the last handle is gone or one asks to stop.
    pub(super) fn run(mut self) {
        loop {
            let (jobs, next) = self.gather();
            if jobs.is_empty() {
                self.sweep();
            } else {
                self.serve(jobs);
            }
            match next {
                Next::More => {}
                Next::Lend(lent) => lent.serve(&self.connection, self.idle_limit),
                Next::End => return,
                Next::Stop(caller) => {
                    drop(self);
                    return post::stopped(caller);
                }
            }
        }
    }

    fn gather(&self) -> (Vec<BoxJob>, Next) {
        let mut jobs = Vec::new();
        let mut message = match self.sweeper.wait() {
            Some(wait) => self.calls.recv_timeout(wait),
            None => self
                .calls
                .recv()
                .map_err(|_| RecvTimeoutError::Disconnected),
        };
        loop {
            match message {
                Ok(Message::Job(Call::Job(job))) => jobs.push(job),
                Ok(Message::Job(Call::Lend(lent))) => return (jobs, Next::Lend(lent)),
                Ok(Message::Stop(caller)) => return (jobs, Next::Stop(caller)),
                Err(RecvTimeoutError::Timeout) => return (jobs, Next::More),
                Err(RecvTimeoutError::Disconnected) => return (jobs, Next::End),
            }
            if jobs.len() >= MOST {
                return (jobs, Next::More);
            }
            message = self.calls.try_recv().map_err(|none| match none {
                TryRecvError::Empty => RecvTimeoutError::Timeout,
                TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
            });
        }
    }

    fn serve(&mut self, mut jobs: Vec<BoxJob>) {
        let ended = self.carry_out(&mut jobs, Sweeper::step_behind_calls);
        for job in jobs {
            job.answer(ended.as_ref().map(|&()| ()));
        }
    }

    /// Performs the calls in one transaction; nothing is answered before its end.
    fn carry_out(
        &mut self,
        jobs: &mut [BoxJob],
        sweep: fn(&mut Sweeper, &mut Batch<'_>),
    ) -> Result<(), Fault> {
        let mut batch = Batch::begin(&self.connection).map_err(Fault::new)?;
        for job in jobs.iter_mut().filter(|job| job.is_wanted()) {
            job.perform(&mut batch);
            if batch.is_lost() {
                return Err(Fault::lost());
            }
        }
        if self.sweeper.is_due() {
            sweep(&mut self.sweeper, &mut batch);
        }
        if batch.is_lost() {
            return Err(Fault::lost());
        }
        batch.commit().map_err(Fault::new)
    }

    /// Sweeps while no call waits.
    fn sweep(&mut self) {
        if !self.sweeper.is_due() {
            return;
        }
        let is_due = sweep::is_due(&self.connection).unwrap_or_else(|error| {
            tracing::warn!(%error, "what is to be swept could not be read");
            false
        });
        if !is_due {
            self.sweeper.rest();
        } else if let Err(fault) = self.carry_out(&mut [], Sweeper::step_alone) {
            tracing::warn!(error = %fault.error(), "a step of sweeping failed");
            self.sweeper.rest();
        }
    }
}

/// The most calls of one transaction, so that the first of them does not wait for ever.
const MOST: usize = 512;
