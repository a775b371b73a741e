//! A store behind a bad line: calls and answers are lost, late and doubled.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::sleep;
use tower_idempotency::store::{
    Claim, Hold, MemoryStore, Settled, Settlement, Sight, Standing, Store, Verdict,
};
use tower_idempotency::{Conversation, Error, Key};

use crate::ledger::{Ledger, now};
use crate::process::Process;
use crate::world::World;

/// One process's line to the store.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) world: Arc<World>,
    pub(crate) process: Arc<Process>,
}

/// What befalls one call.
#[derive(Debug, Default)]
pub(crate) struct Fate {
    /// How long the call travels.
    pub(crate) there: Duration,
    /// How long the answer travels.
    pub(crate) back: Duration,
    /// How long after the call its double comes.
    pub(crate) doubled_after: Option<Duration>,
    pub(crate) lost: Lost,
    /// Whether the caller is told at once that the line broke, or waits for nothing.
    pub(crate) silent: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Lost {
    #[default]
    Nothing,
    Call,
    Answer,
}

impl Fate {
    fn is_plain(&self) -> bool {
        self.there.is_zero()
            && self.back.is_zero()
            && self.doubled_after.is_none()
            && self.lost == Lost::Nothing
    }
}

impl Line {
    async fn call<T: Send + 'static>(
        &self,
        name: &'static str,
        apply: impl Fn(&mut Ledger, &MemoryStore, usize) -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<T, Error> {
        self.process.running().await;
        let fate = self.world.fate();
        self.world
            .note(|| format!("process {} sends {name}: {fate:?}", self.process.number));
        if fate.is_plain() {
            return self.world.apply(self.process.number, &apply);
        }
        let (told, answer) = oneshot::channel();
        let travel = travel(
            (Arc::clone(&self.world), self.process.number),
            fate,
            apply,
            told,
        );
        tokio::spawn(travel);
        let answer = answer.await;
        self.process.running().await;
        answer.unwrap_or_else(|_| Err(Error::unavailable("the line broke")))
    }
}

/// A call on its way, which goes on whatever becomes of its caller.
async fn travel<T: Send + 'static>(
    (world, process): (Arc<World>, usize),
    fate: Fate,
    apply: impl Fn(&mut Ledger, &MemoryStore, usize) -> Result<T, Error> + Send + Sync + 'static,
    told: oneshot::Sender<Result<T, Error>>,
) {
    let restarts = world.restarts();
    sleep(fate.there).await;
    let mut answer = None;
    if fate.lost != Lost::Call && world.restarts() == restarts {
        answer = Some(world.apply(process, &apply));
    }
    let double = async {
        if let Some(after) = fate.doubled_after {
            sleep(after).await;
            // Nobody waits for the answer of a double.
            drop(world.apply(process, &apply));
        }
    };
    let tell = async {
        sleep(fate.back).await;
        let is_lost = fate.lost == Lost::Answer || world.restarts() != restarts;
        match answer.filter(|_| !is_lost) {
            Some(answer) => drop(told.send(answer)),
            None if fate.silent => std::future::pending().await,
            None => drop(told),
        }
    };
    futures_util::future::join(double, tell).await;
}

impl Store for Line {
    async fn claim(&self, claim: &Claim) -> Result<Vec<Verdict>, Error> {
        let claim = claim.clone();
        let apply =
            move |ledger: &mut Ledger, store: &_, process| ledger.claim(store, process, &claim);
        self.call("a claim", apply).await
    }

    async fn renew(&self, holds: &[Hold], lease: Duration) -> Result<Vec<Standing>, Error> {
        let holds = holds.to_vec();
        let apply = move |ledger: &mut Ledger, store: &_, process| {
            ledger.renew(store, process, (&holds, lease))
        };
        self.call("a renewal", apply).await
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Settled>, Error> {
        let settlements = settlements.to_vec();
        let apply = move |ledger: &mut Ledger, store: &_, process| {
            ledger.settle(store, process, &settlements)
        };
        self.call("a settlement", apply).await
    }

    async fn look(&self, keys: &[Key]) -> Result<Vec<Sight>, Error> {
        let keys = keys.to_vec();
        let apply = move |_: &mut Ledger, store: &MemoryStore, _| now(store.look(&keys));
        self.call("a look", apply).await
    }

    async fn forget(&self, _: &Conversation) -> Result<u64, Error> {
        Err(Error::rejected("nobody forgets in these schedules"))
    }

    async fn close(&self, _: &Conversation) -> Result<(), Error> {
        Err(Error::rejected("nobody closes in these schedules"))
    }

    async fn sweep(&self, _: usize) -> Result<u64, Error> {
        Err(Error::rejected("nobody sweeps in these schedules"))
    }
}
