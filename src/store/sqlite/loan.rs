//! A transaction of the file, lent to a run.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rusqlite::Connection;
use tokio::sync::{Mutex, Notify, oneshot};
use tokio::time::timeout;

use crate::error::Error;
use crate::store::lease::{Settled, Settlement};
use crate::store::loan::{Committed, Loan};
use crate::store::queue::arrival::Arrival;
use crate::store::queue::turn::{Onward, Report};
use crate::store::sqlite::batch::Batch;
use crate::store::sqlite::fault::Fault;
use crate::store::sqlite::inbox::accept::AcceptWork;
use crate::store::sqlite::inbox::report::ReportWork;
use crate::store::sqlite::job::Work;
use crate::store::sqlite::lent::{Call, Lent, Step, Steps, UNMARK, over};
use crate::store::sqlite::post::Post;
use crate::store::sqlite::settle::SettleWork;
use crate::store::sqlite::tables::Tables;

/// What all loans of a store share.
#[derive(Clone)]
pub(super) struct Lending {
    pub(super) writer: Post<Call>,
    /// How long the writer may be waited for.
    pub(super) limit: Duration,
    pub(super) news: Arc<Notify>,
}

/// The transaction that a run may borrow.
pub(crate) struct SqliteLoan {
    lending: Lending,
    /// Where the run's message is, if it is one of a queue.
    tables: Tables,
    slot: Mutex<Slot>,
    is_begun: AtomicBool,
}

enum Slot {
    Fresh,
    Open(Steps),
    Ended,
}

impl SqliteLoan {
    pub(super) fn new(lending: &Lending, tables: Tables) -> Self {
        Self {
            lending: lending.clone(),
            tables,
            slot: Mutex::new(Slot::Fresh),
            is_begun: AtomicBool::new(false),
        }
    }

    /// Runs `work` on the writer's thread, in the run's transaction, which is begun if it is not
    /// yet. After an error of `work` all that it wrote is undone.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let mut slot = self.slot.lock().await;
        if let Slot::Fresh = *slot {
            *slot = Slot::Open(self.begin().await?);
            self.is_begun.store(true, Ordering::Relaxed);
        }
        let Slot::Open(steps) = &*slot else {
            return Err(Error::rejected("the run has ended"));
        };
        let (caller, answer) = oneshot::channel();
        let step = move |batch: &mut Batch<'_>| {
            // A panic belongs to the handler, and not to the thread that all calls share.
            let ran = catch_unwind(AssertUnwindSafe(|| {
                batch.apart(|batch| work(batch.connection()).map_err(of_handler))
            }));
            // A caller who went away needs no answer.
            drop(caller.send(ran));
        };
        steps.send(Step::Work(Box::new(step)))?;
        match answer.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(panic)) => resume_unwind(panic),
            Err(_) => Err(over()),
        }
    }

    async fn begin(&self) -> Result<Steps, Error> {
        let (lent, steps, begun) = Lent::new();
        self.lending.writer.send(Call::Lend(lent))?;
        match timeout(self.lending.limit, begun).await {
            Ok(Ok(begun)) => begun.map(|()| steps),
            Ok(Err(_)) => Err(Error::unavailable("the SQLite store was shut down")),
            Err(_) => Err(Error::overdue(
                "other runs have the file's only transaction",
            )),
        }
    }

    /// The run's end of the transaction, begun now if the handler did not.
    async fn take_back(&self) -> Result<Steps, Error> {
        let mut slot = self.slot.lock().await;
        match std::mem::replace(&mut *slot, Slot::Ended) {
            Slot::Open(steps) => Ok(steps),
            Slot::Fresh => self.begin().await,
            Slot::Ended => Err(Error::rejected("the run has ended")),
        }
    }

    /// Writes the last statements and commits, on the writer's thread.
    async fn conclude<T: Send + 'static>(
        &self,
        effects: &[Arrival],
        end: impl FnOnce(&mut Batch<'_>) -> Result<Option<T>, Error> + Send + 'static,
    ) -> Result<Committed<T>, Error> {
        let steps = match self.take_back().await {
            Ok(steps) => steps,
            Err(error) => return Ok(Committed::RolledBack(error)),
        };
        let (caller, answer) = oneshot::channel();
        let accept = AcceptWork::new(effects, None);
        let has_effects = !effects.is_empty();
        let step = move |mut batch: Batch<'_>| {
            let written = last(&mut batch, has_effects.then_some(&accept), end);
            let committed = match written {
                Ok(Some(answer)) => match batch.commit() {
                    Ok(()) => Ok(Committed::Applied(answer)),
                    Err(error) => Err(Fault::new(error).error()),
                },
                Ok(None) => Ok(Committed::Superseded),
                Err(error) => Ok(Committed::RolledBack(error)),
            };
            // The end of a run is told to whoever waits for it.
            drop(caller.send(committed));
        };
        if let Err(error) = steps.send(Step::End(Box::new(step))) {
            return Ok(Committed::RolledBack(error));
        }
        let committed = match answer.await {
            Ok(committed) => committed?,
            // The step was not begun: the transaction was over before.
            Err(_) => Committed::RolledBack(over()),
        };
        if has_effects && matches!(committed, Committed::Applied(_)) {
            self.lending.news.notify_one();
        }
        Ok(committed)
    }
}

/// Effects first, then the end of the run; `None` if another has it.
fn last<T>(
    batch: &mut Batch<'_>,
    effects: Option<&AcceptWork>,
    end: impl FnOnce(&mut Batch<'_>) -> Result<Option<T>, Error>,
) -> Result<Option<T>, Error> {
    batch.execute(UNMARK, []).map_err(|error| {
        Error::misconfigured("the handler ended the run's transaction by itself").because(error)
    })?;
    if let Some(effects) = effects {
        let before = batch.turn_to(Tables::Outbox);
        let accepted = effects.perform(batch);
        batch.turn_to(before);
        accepted?;
    }
    end(batch)
}

impl Loan for SqliteLoan {
    fn is_begun(&self) -> bool {
        self.is_begun.load(Ordering::Relaxed)
    }

    fn record<'a>(
        &'a self,
        effects: &'a [Arrival],
        settlements: &'a [Settlement],
    ) -> BoxFuture<'a, Result<Committed<()>, Error>> {
        Box::pin(async move {
            let work = SettleWork::new(settlements)?;
            let end = move |batch: &mut Batch<'_>| {
                let settled = work.perform(batch)?;
                let is_whole = settled.iter().all(|settled| *settled == Settled::Applied);
                Ok(is_whole.then_some(()))
            };
            self.conclude(effects, end).await
        })
    }

    fn report<'a>(
        &'a self,
        effects: &'a [Arrival],
        report: &'a Report,
    ) -> BoxFuture<'a, Result<Committed<Onward>, Error>> {
        let tables = self.tables;
        let reports = vec![report.clone()];
        Box::pin(self.conclude(effects, move |batch| {
            let before = batch.turn_to(tables);
            let onward = ReportWork { reports }.perform(batch);
            batch.turn_to(before);
            let onward = onward?.pop();
            Ok(onward.filter(|onward| *onward != Onward::Lost))
        }))
    }

    fn roll_back(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            // Dropped, it is rolled back.
            *self.slot.lock().await = Slot::Ended;
        })
    }
}

fn of_handler(cause: rusqlite::Error) -> Error {
    Error::rejected("a statement of the handler failed").because(cause)
}

impl fmt::Debug for SqliteLoan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteLoan")
            .field("is_begun", &self.is_begun())
            .finish_non_exhaustive()
    }
}
