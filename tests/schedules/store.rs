//! A store behind a bad line.

use std::sync::Arc;
use std::time::Duration;

use tower_idempotency::store::{
    Claim, Hold, MemoryStore, Settled, Settlement, Sight, Standing, Store, Verdict,
};
use tower_idempotency::{Conversation, Error, Key};

use crate::ledger::{Ledger, now};
use crate::line;
use crate::process::Process;
use crate::world::World;

/// One process's line to the store.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) world: Arc<World>,
    pub(crate) process: Arc<Process>,
}

impl Line {
    async fn call<T: Send + 'static>(
        &self,
        name: &'static str,
        apply: impl Fn(&mut Ledger, &MemoryStore, usize) -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<T, Error> {
        let apply = move |world: &World, process| world.apply(process, &apply);
        line::call((&self.world, &self.process), name, apply).await
    }
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
