//! The end of a run, as the store is told.

use std::sync::Arc;

#[cfg(not(any(test, feature = "testing")))]
use rand::random;
use tokio::time::{Instant, sleep};

#[cfg(any(test, feature = "testing"))]
use crate::chance::random;
use crate::channel::contract::{Ack, Channel};
use crate::claimed::Claimed;
use crate::flow::context::Context;
use crate::flow::recording::ack_record;
use crate::key::Key;
use crate::pace::{SETTLE_TRIES, give_up_settling_after, settle_again_after};
use crate::policy::{Outcome, obey};
use crate::record::{Keep, Record};
use crate::store::contract::{End, Hold, Lease, Settled, Settlement, Store};
use crate::underway::Mine;

/// What became of the end of a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Confirmed {
    /// It is in force.
    Applied,
    /// These messages were taken over by other runs.
    Superseded(Vec<Key>),
    /// The store did not say. It is asked again in the background.
    Unconfirmed,
}

/// How a run ends, and what repeats are given if its messages are done.
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    /// `None` where the answer is no success: a message that is done all the same has the
    /// channel's ack as its record.
    pub(crate) record: Option<Arc<Record>>,
}

impl Ended {
    pub(crate) const RELEASED: Self = Self {
        outcome: Outcome::Release,
        record: None,
    };
}

/// The right to end a run, spent by ending it.
pub(crate) struct Ending {
    pub(crate) leases: Vec<Lease>,
    pub(crate) claimed: Claimed,
    pub(crate) keep: Keep,
    pub(crate) ack: Ack,
    pub(crate) mine: Mine,
}

impl Ending {
    pub(crate) fn holds(&self) -> Vec<Hold> {
        self.leases.iter().map(Lease::hold).collect()
    }

    /// Ends the run, as the handler said for single messages and as `ended` says for the rest.
    ///
    /// If the store does not confirm it, that is tried again in the background.
    pub(crate) async fn settle<S: Store, C: Channel>(
        self,
        context: &Arc<Context<S, C>>,
        ended: Ended,
    ) -> Confirmed {
        let record = ended
            .record
            .unwrap_or_else(|| Arc::new(ack_record(&self.ack)));
        let settlements = self.leases.into_iter().enumerate().map(|(at, lease)| {
            let said = self.claimed.said(at).map(|said| obey(said, self.keep));
            match said.unwrap_or(ended.outcome) {
                Outcome::Record(keep) => lease.record(Arc::clone(&record), keep),
                Outcome::Release => lease.release(),
            }
        });
        settle_or_go_on(context, settlements.collect(), Some(self.mine)).await
    }
}

/// Gives leases back that no run was begun for.
pub(crate) async fn release<S: Store, C: Channel>(context: &Context<S, C>, leases: Vec<Lease>) {
    if leases.is_empty() {
        return;
    }
    let settlements: Vec<_> = leases.into_iter().map(Lease::release).collect();
    // What is not given back lapses.
    if let Ok(settled) = context.within(context.store.settle(&settlements)).await {
        count(context, &settlements, &settled);
    }
}

async fn settle_or_go_on<S: Store, C: Channel>(
    context: &Arc<Context<S, C>>,
    settlements: Vec<Settlement>,
    mine: Option<Mine>,
) -> Confirmed {
    for _ in 0..SETTLE_TRIES {
        match context.within(context.store.settle(&settlements)).await {
            Ok(settled) => return count(context, &settlements, &settled),
            Err(error) if error.is_retryable() => {}
            Err(_) => break,
        }
    }
    context.counters.leave_unconfirmed();
    let going_on = Arc::clone(context);
    context.detached.see_through(async move {
        settle_in_the_background(&going_on, &settlements).await;
        drop(mine);
    });
    Confirmed::Unconfirmed
}

/// Tries again under renewed leases, so that no repeat runs what has run.
async fn settle_in_the_background<S: Store, C: Channel>(
    context: &Context<S, C>,
    settlements: &[Settlement],
) {
    let lease = context.options.lease;
    let holds: Vec<_> = settlements.iter().map(|s| s.hold.clone()).collect();
    let began = Instant::now();
    let mut tries = 0;
    while began.elapsed() < give_up_settling_after(lease) {
        sleep(settle_again_after(tries, random())).await;
        tries += 1;
        if let Ok(settled) = context.within(context.store.settle(settlements)).await {
            count(context, settlements, &settled);
            return;
        }
        // Its failure is counted; the settlement is what matters.
        context
            .within(context.store.renew(&holds, lease))
            .await
            .ok();
    }
    tracing::error!("the end of a run could not be recorded; a repeat will run again");
}

fn count<S, C>(
    context: &Context<S, C>,
    settlements: &[Settlement],
    settled: &[Settled],
) -> Confirmed {
    let mut superseded = Vec::new();
    for (settlement, settled) in settlements.iter().zip(settled) {
        match (&settlement.end, settled) {
            (End::Record { .. }, Settled::Applied) => context.counters.recorded.one(),
            (End::Release, Settled::Applied) => context.counters.released.one(),
            (End::Record { .. }, Settled::Superseded) => {
                context.counters.superseded.one();
                superseded.push(settlement.hold.key.clone());
            }
            (End::Release, Settled::Superseded) => context.counters.superseded.one(),
        }
    }
    if superseded.is_empty() {
        Confirmed::Applied
    } else {
        Confirmed::Superseded(superseded)
    }
}
