//! The end of a run, as the store is told.

use std::sync::Arc;
use std::time::Duration;

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
use crate::outcome::Ends;
use crate::pace::{SETTLE_TRIES, give_up_settling_after, settle_again_after};
use crate::policy::Outcome;
use crate::record::Record;
use crate::store::contract::{End, Hold, Lease, Settled, Settlement, Standing, Store};
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
    /// Without a success, and so without a record.
    pub(crate) fn without_record(outcome: Outcome) -> Self {
        Self {
            outcome,
            record: None,
        }
    }
}

/// The right to end a run, spent by ending it.
pub(crate) struct Ending {
    pub(crate) leases: Vec<Lease>,
    pub(crate) claimed: Claimed,
    pub(crate) ends: Ends,
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
        let mut parked = Vec::new();
        let mut settlements = Vec::with_capacity(self.leases.len());
        for (at, lease) in self.leases.into_iter().enumerate() {
            let said = self.claimed.said(at).map(|said| self.ends.obey(said));
            match said.unwrap_or(ended.outcome) {
                Outcome::Record(keep) => settlements.push(lease.record(Arc::clone(&record), keep)),
                Outcome::Release => settlements.push(lease.release()),
                Outcome::Unknown => parked.push(lease.hold()),
            }
        }
        park(context, &parked).await;
        if settlements.is_empty() {
            return Confirmed::Applied;
        }
        settle_or_go_on(context, settlements, Some(self.mine)).await
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

/// Ends leases now and leaves their rows, so that repeats are told at once that nobody knows what
/// became of these messages. A store that does not answer tells them when the leases have lapsed.
async fn park<S: Store, C: Channel>(context: &Context<S, C>, holds: &[Hold]) {
    if holds.is_empty() {
        return;
    }
    for _ in 0..SETTLE_TRIES {
        let standings = context
            .within(context.store.renew(holds, Duration::ZERO))
            .await;
        if let Ok(standings) = standings {
            let parked = standings.iter().filter(|s| **s == Standing::Renewed);
            let parked = parked.count();
            context.counters.parked.add(parked);
            context.counters.superseded.add(holds.len() - parked);
            return;
        }
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
    tracing::error!("the end of a run could not be recorded; its lease lapses");
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
