//! One call on its way to the writer and back.

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::error::Error;
use crate::store::sqlite::batch::Batch;
use crate::store::sqlite::fault::Fault;

/// What one kind of call does inside the writer's transaction.
pub(super) trait Work: Send + 'static {
    /// What its caller is told.
    type Answer: Send + 'static;

    /// Does the work. After an error everything that it wrote is undone.
    fn perform(&self, batch: &mut Batch<'_>) -> Result<Self::Answer, Error>;

    /// What becomes of the work if its caller went away before it was begun.
    const ABANDONED: Abandoned;
}

/// What becomes of work whose caller has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Abandoned {
    /// It is dropped: a lease that nobody holds would only be in the way.
    Drop,
    /// It is done all the same: the end of a run is worth keeping.
    Finish,
}

/// A [`Work`] of any kind, with the way back to its caller.
pub(super) trait Job: Send {
    /// Whether it is still to be performed.
    fn is_wanted(&self) -> bool;

    /// Performs the work and keeps the answer until the transaction has ended.
    fn perform(&mut self, batch: &mut Batch<'_>);

    /// Tells the caller; `ended` is the end of the transaction.
    fn answer(self: Box<Self>, ended: Result<(), &Fault>);
}

pub(super) type BoxJob = Box<dyn Job>;

pub(super) type Reply<A> = oneshot::Receiver<Result<A, Error>>;

struct Asked<W: Work> {
    work: W,
    answer: Option<Result<W::Answer, Error>>,
    caller: oneshot::Sender<Result<W::Answer, Error>>,
    /// The call's place among those that wait; free again when the call has been answered.
    _place: OwnedSemaphorePermit,
}

/// A job for the writer, and where its answer will come.
pub(super) fn ask<W: Work>(work: W, place: OwnedSemaphorePermit) -> (BoxJob, Reply<W::Answer>) {
    let (caller, reply) = oneshot::channel();
    let job = Asked {
        work,
        answer: None,
        caller,
        _place: place,
    };
    (Box::new(job), reply)
}

impl<W: Work> Job for Asked<W> {
    fn is_wanted(&self) -> bool {
        match W::ABANDONED {
            Abandoned::Drop => !self.caller.is_closed(),
            Abandoned::Finish => true,
        }
    }

    fn perform(&mut self, batch: &mut Batch<'_>) {
        self.answer = Some(batch.apart(|batch| self.work.perform(batch)));
    }

    fn answer(self: Box<Self>, ended: Result<(), &Fault>) {
        let answer = match (self.answer, ended) {
            (Some(Ok(answer)), Ok(())) => Ok(answer),
            (Some(Err(own)), _) => Err(own),
            (_, Err(fault)) => Err(fault.error()),
            (None, Ok(())) => Err(Error::unavailable("the call was not carried out")),
        };
        // A caller who went away needs no answer.
        drop(self.caller.send(answer));
    }
}
