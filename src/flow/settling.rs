//! Settlements on their way to the store.

use std::sync::Arc;
use std::time::Duration;

#[cfg(not(any(test, feature = "testing")))]
use rand::random;
use tokio::time::{Instant, sleep};

#[cfg(any(test, feature = "testing"))]
use crate::chance::random;
use crate::channel::contract::Channel;
use crate::claimed::Claimed;
use crate::flow::context::Context;
use crate::key::Key;
use crate::pace::{SETTLE_TRIES, give_up_settling_after, settle_again_after};
use crate::store::contract::Store;
use crate::store::lease::{End, Hold, Lease, Settled, Settlement, Standing};
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
    /// What the handler wrote in the run's transaction is not in force, nor is a record.
    RolledBack(Undone),
}

/// Why a transaction is not in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Undone {
    /// It failed.
    Failed,
    /// The handler ended it by itself, or kept it.
    Misused,
    /// It may be in force all the same: the repeat will tell.
    Unknown,
}

/// Settlements on their way to the store, and what they end.
pub(crate) struct Settling {
    pub(crate) settlements: Vec<Settlement>,
    pub(crate) mine: Mine,
    pub(crate) claimed: Claimed,
}

impl Settling {
    /// The run is over, and its repeats in this process need not wait any longer. If it is
    /// recorded, what was to be done then is done.
    fn end<S, C>(self, context: &Context<S, C>, confirmed: &Confirmed) {
        if *confirmed == Confirmed::Applied && self.settlements.iter().any(is_record) {
            afterwards(context, &self.claimed);
        }
    }
}

/// Whether a message is done.
pub(crate) fn is_record(settlement: &Settlement) -> bool {
    matches!(settlement.end, End::Record { .. })
}

/// The same run, ended without a record.
pub(crate) fn released(settlement: &Settlement) -> Settlement {
    Settlement {
        hold: settlement.hold.clone(),
        end: End::Release,
    }
}

/// Does what the handler wants done now that its record is written.
pub(crate) fn afterwards<S, C>(context: &Context<S, C>, claimed: &Claimed) {
    for work in claimed.take_afterwards() {
        context.detached.see_through(work());
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

pub(crate) async fn settle_or_go_on<S: Store, C: Channel>(
    context: &Arc<Context<S, C>>,
    settling: Settling,
) -> Confirmed {
    if let Some(settled) = settle_now(context, &settling.settlements).await {
        let confirmed = count(context, &settling.settlements, &settled);
        settling.end(context, &confirmed);
        return confirmed;
    }
    context.counters.leave_unconfirmed();
    let going_on = Arc::clone(context);
    context.detached.see_through(async move {
        if let Some(confirmed) = settle_in_the_background(&going_on, &settling.settlements).await {
            settling.end(&going_on, &confirmed);
        }
    });
    Confirmed::Unconfirmed
}

/// Settles at once. `None` if the store does not say.
pub(crate) async fn settle_now<S: Store, C: Channel>(
    context: &Context<S, C>,
    settlements: &[Settlement],
) -> Option<Vec<Settled>> {
    for _ in 0..SETTLE_TRIES {
        match context.within(context.store.settle(settlements)).await {
            Ok(settled) => return Some(settled),
            Err(error) if error.is_retryable() => {}
            Err(_) => break,
        }
    }
    None
}

/// Ends leases now and leaves their rows, so that repeats are told at once that nobody knows what
/// became of these messages. A store that does not answer tells them when the leases have lapsed.
pub(crate) async fn park<S: Store, C: Channel>(context: &Context<S, C>, holds: &[Hold]) {
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

/// Tries again under renewed leases, so that no repeat runs what has run.
async fn settle_in_the_background<S: Store, C: Channel>(
    context: &Context<S, C>,
    settlements: &[Settlement],
) -> Option<Confirmed> {
    let lease = context.options.lease;
    let holds: Vec<_> = settlements.iter().map(|s| s.hold.clone()).collect();
    let began = Instant::now();
    let mut tries = 0;
    while began.elapsed() < give_up_settling_after(lease) {
        sleep(settle_again_after(tries, random())).await;
        tries += 1;
        if let Ok(settled) = context.within(context.store.settle(settlements)).await {
            return Some(count(context, settlements, &settled));
        }
        // Its failure is counted; the settlement is what matters.
        context
            .within(context.store.renew(&holds, lease))
            .await
            .ok();
    }
    tracing::error!("the end of a run could not be recorded; its lease lapses");
    None
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
