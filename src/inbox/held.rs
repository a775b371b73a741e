//! The turns that a worker has, and the heart that keeps them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::channel::contract::Channel;
use crate::inbox::shared::Shared;
use crate::pace::{renew_every, usable};
use crate::store::lease::Standing;
use crate::store::queue::contract::Queue;
use crate::store::queue::turn::TurnHold;

/// The turns that a worker has.
#[derive(Debug, Default)]
pub(crate) struct Held(Mutex<HashMap<TurnHold, Known>>);

/// What is known of a turn.
#[derive(Debug)]
struct Known {
    /// Until when it can be counted on, by this machine's own clock.
    until: Instant,
    /// Cancelled when another has it.
    taken: CancellationToken,
}

/// One turn among those that are held; it is let go when this is dropped.
#[derive(Debug)]
pub(crate) struct Holding {
    held: Arc<Held>,
    pub(crate) hold: TurnHold,
    /// Cancelled when the store says that another has it.
    pub(crate) taken: CancellationToken,
}

impl Held {
    /// Holds a turn that can be counted on until `until`.
    pub(crate) fn hold(self: &Arc<Self>, hold: TurnHold, until: Instant) -> Holding {
        let taken = CancellationToken::new();
        let known = Known {
            until,
            taken: taken.clone(),
        };
        self.turns().insert(hold, known);
        Holding {
            held: Arc::clone(self),
            hold,
            taken,
        }
    }

    fn turns(&self) -> MutexGuard<'_, HashMap<TurnHold, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> Vec<TurnHold> {
        self.turns().keys().copied().collect()
    }

    fn renewed(&self, hold: TurnHold, until: Instant) {
        if let Some(known) = self.turns().get_mut(&hold) {
            known.until = until;
        }
    }

    fn lose(&self, hold: TurnHold) {
        if let Some(known) = self.turns().get(&hold) {
            known.taken.cancel();
        }
    }

    fn until(&self, hold: TurnHold) -> Option<Instant> {
        self.turns().get(&hold).map(|known| known.until)
    }
}

impl Holding {
    /// Whether the turn can no longer be counted on.
    pub(crate) fn is_lost(&self) -> bool {
        let until = self.held.until(self.hold);
        self.taken.is_cancelled() || until.is_none_or(|until| until <= Instant::now())
    }

    /// Waits until the turn can no longer be counted on: another has it, or its lease has nearly
    /// lapsed and was not renewed.
    pub(crate) async fn lost(&self) {
        while !self.is_lost() {
            let until = self.held.until(self.hold).unwrap_or_else(Instant::now);
            tokio::select! {
                () = self.taken.cancelled() => {}
                () = sleep_until(until) => {}
            }
        }
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.held.turns().remove(&self.hold);
    }
}

/// Renews all turns, three times per lease, for as long as it is polled.
///
/// It runs in a task of its own: a handler that blocks its thread does not stop it as long as the
/// runtime has another thread.
pub(crate) async fn beat<Q: Queue, C: Channel>(shared: Arc<Shared<Q, C>>, held: Arc<Held>) {
    let lease = shared.plan.lease;
    let mut beats = interval(renew_every(lease).max(SHORTEST));
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        beats.tick().await;
        renew(&shared, &held, lease).await;
    }
}

const SHORTEST: Duration = Duration::from_millis(1);

async fn renew<Q: Queue, C: Channel>(shared: &Shared<Q, C>, held: &Held, lease: Duration) {
    let turns = held.all();
    if turns.is_empty() {
        return;
    }
    let until = Instant::now() + usable(lease);
    let renewal = shared.context.store.renew_turns(&turns, lease);
    // A renewal that fails is made again with the next beat; until then the turns are still ours.
    let Ok(standings) = shared.within(renewal).await else {
        return;
    };
    for (hold, standing) in turns.into_iter().zip(standings) {
        match standing {
            Standing::Renewed => held.renewed(hold, until),
            Standing::Lost => held.lose(hold),
        }
    }
}
