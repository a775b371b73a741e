//! A store behind a bad line, as an inbox sees it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tower_idempotency::store::{
    Accepted, Arrival, Backlog, Claim, DeadLetter, Death, Hold, MemoryStore, Onward, Queue, Report,
    Settled, Settlement, Sight, Standing, Store, Turn, TurnHold, Verdict, Waiting,
};
use tower_idempotency::{Conversation, Error, Key};

use crate::ledger::{Ledger, now};
use crate::line;
use crate::process::Process;
use crate::world::World;

/// One process's line to the store.
#[derive(Clone)]
pub(crate) struct BadLine {
    pub(crate) world: Arc<World>,
    pub(crate) process: Arc<Process>,
}

impl BadLine {
    async fn call<T: Send + 'static>(
        &self,
        name: &'static str,
        apply: impl Fn(&mut Ledger, &MemoryStore) -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<T, Error> {
        let apply = move |world: &World, _| world.apply(&apply);
        line::call((&self.world, &self.process), name, apply).await
    }
}

impl Queue for BadLine {
    fn is_durable(&self) -> bool {
        true
    }

    async fn accept(
        &self,
        arrivals: &[Arrival],
        lease: Option<Duration>,
    ) -> Result<Vec<Accepted>, Error> {
        let arrivals = arrivals.to_vec();
        let apply = move |ledger: &mut Ledger, store: &_| ledger.accept(store, (&arrivals, lease));
        self.call("an accept", apply).await
    }

    async fn take(
        &self,
        lines: usize,
        messages: usize,
        lease: Duration,
    ) -> Result<Vec<Turn>, Error> {
        let apply =
            move |ledger: &mut Ledger, store: &_| ledger.take(store, (lines, messages, lease));
        self.call("a take", apply).await
    }

    async fn renew_turns(
        &self,
        turns: &[TurnHold],
        lease: Duration,
    ) -> Result<Vec<Standing>, Error> {
        let turns = turns.to_vec();
        let apply = move |ledger: &mut Ledger, store: &_| ledger.renew(store, (&turns, lease));
        self.call("a renewal", apply).await
    }

    async fn report(&self, reports: &[Report]) -> Result<Vec<Onward>, Error> {
        let reports = reports.to_vec();
        let apply = move |ledger: &mut Ledger, store: &_| ledger.report(store, &reports);
        self.call("a report", apply).await
    }

    async fn kept(&self, _: &Key) -> Result<Option<Bytes>, Error> {
        unused()
    }

    async fn backlog(&self) -> Result<Backlog, Error> {
        self.call("a count", |_, store| now(store.backlog())).await
    }

    async fn waiting(&self, limit: usize) -> Result<Vec<Waiting>, Error> {
        let apply = move |_: &mut Ledger, store: &MemoryStore| now(store.waiting(limit));
        self.call("a list", apply).await
    }

    async fn dead(&self, after: Option<Death>, limit: usize) -> Result<Vec<DeadLetter>, Error> {
        let apply = move |_: &mut Ledger, store: &MemoryStore| now(store.dead(after, limit));
        self.call("a list of the dead", apply).await
    }

    async fn redrive(&self, deaths: &[Death]) -> Result<u64, Error> {
        let deaths = deaths.to_vec();
        let apply = move |ledger: &mut Ledger, store: &_| ledger.redrive(store, &deaths);
        self.call("a redrive", apply).await
    }

    async fn bury(&self, _: &[Death]) -> Result<u64, Error> {
        unused()
    }
}

/// An inbox does not claim.
impl Store for BadLine {
    async fn claim(&self, _: &Claim) -> Result<Vec<Verdict>, Error> {
        unused()
    }

    async fn renew(&self, _: &[Hold], _: Duration) -> Result<Vec<Standing>, Error> {
        unused()
    }

    async fn settle(&self, _: &[Settlement]) -> Result<Vec<Settled>, Error> {
        unused()
    }

    async fn look(&self, _: &[Key]) -> Result<Vec<Sight>, Error> {
        unused()
    }

    async fn forget(&self, _: &Conversation) -> Result<u64, Error> {
        unused()
    }

    async fn close(&self, _: &Conversation) -> Result<(), Error> {
        unused()
    }

    async fn sweep(&self, _: usize) -> Result<u64, Error> {
        unused()
    }
}

fn unused<T>() -> Result<T, Error> {
    Err(Error::rejected("nobody asks for this in these schedules"))
}

/// The message of a stored request: its body names it.
pub(crate) fn message_of(raw: &[u8]) -> usize {
    let text = String::from_utf8_lossy(raw);
    let (_, rest) = text.split_once(r#""id":""#).unwrap();
    rest.split('"').next().unwrap().parse().unwrap()
}
