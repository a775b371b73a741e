//! A transaction that the writer keeps open for one run.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::error::Error;
use crate::store::sqlite::batch::Batch;
use crate::store::sqlite::fault::Fault;
use crate::store::sqlite::job::BoxJob;

/// What the writer is sent.
pub(super) enum Call {
    Job(BoxJob),
    Lend(Lent),
}

/// The writer's end of a run's transaction.
pub(super) struct Lent {
    begun: oneshot::Sender<Result<(), Error>>,
    steps: Receiver<Step>,
}

/// What is done in the transaction.
pub(super) enum Step {
    /// Work of the handler.
    Work(Box<dyn FnOnce(&mut Batch<'_>) + Send>),
    /// The last statements, and the commit.
    End(Box<dyn FnOnce(Batch<'_>) + Send>),
}

/// The run's end of it. Dropped, the transaction is rolled back.
pub(super) struct Steps(Sender<Step>);

impl Lent {
    /// A transaction that is to be begun, and what is told when it is.
    pub(super) fn new() -> (Self, Steps, oneshot::Receiver<Result<(), Error>>) {
        let (sender, steps) = channel();
        let (begun, told) = oneshot::channel();
        (Self { begun, steps }, Steps(sender), told)
    }

    /// Keeps the transaction open until its end is sent, the run has gone, or it has been idle for
    /// too long.
    pub(super) fn serve(self, connection: &Connection, idle_limit: Duration) {
        if self.begun.is_closed() {
            return;
        }
        let opened = Batch::begin(connection).map_err(|error| Fault::new(error).error());
        let opened = opened.and_then(|batch| batch.execute(MARK, []).map(|_| batch));
        let mut batch = match opened {
            Ok(batch) => batch,
            // A caller who went away needs no answer.
            Err(error) => return drop(self.begun.send(Err(error))),
        };
        if self.begun.send(Ok(())).is_err() {
            return;
        }
        // Whatever ends it otherwise, the batch is rolled back as it is dropped.
        while let Ok(step) = self.steps.recv_timeout(idle_limit) {
            match step {
                Step::Work(work) => work(&mut batch),
                Step::End(end) => return end(batch),
            }
            if batch.is_lost() {
                return;
            }
        }
    }
}

impl Steps {
    /// # Errors
    /// If the transaction is over.
    pub(super) fn send(&self, step: Step) -> Result<(), Error> {
        self.0.send(step).map_err(|_| over())
    }
}

/// What a run is told whose transaction is over.
pub(super) fn over() -> Error {
    Error::unavailable("the run's transaction was rolled back: it was idle for too long, or failed")
}

/// The mark is gone if the handler ended the transaction and began another.
const MARK: &str = "SAVEPOINT run";
pub(super) const UNMARK: &str = "RELEASE run";
