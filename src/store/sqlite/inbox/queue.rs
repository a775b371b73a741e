//! The store as an inbox: questions go to the writer, which performs many in one transaction.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;

use crate::error::Error;
use crate::key::Key;
use crate::store::lease::Standing;
use crate::store::queue::arrival::{Accepted, Arrival};
use crate::store::queue::backlog::{Backlog, DeadLetter, Death};
use crate::store::queue::contract::Queue;
use crate::store::queue::turn::{Onward, Report, Turn, TurnHold, Waiting};
use crate::store::sqlite::inbox::accept::AcceptWork;
use crate::store::sqlite::inbox::letters::{
    BuryWork, CountWork, DeadWork, KeptWork, ListWork, RedriveWork,
};
use crate::store::sqlite::inbox::report::ReportWork;
use crate::store::sqlite::inbox::take::{RenewWork, TakeWork};
use crate::store::sqlite::kept;
use crate::store::sqlite::store::SqliteStore;

/// Dropped while it waits, a call that takes or accepts is not done if it was not begun; what ends
/// messages is done.
impl Queue for SqliteStore {
    fn is_durable(&self) -> bool {
        true
    }

    async fn accept(
        &self,
        arrivals: &[Arrival],
        lease: Option<Duration>,
    ) -> Result<Vec<Accepted>, Error> {
        self.ask(AcceptWork::new(arrivals, lease)).await
    }

    async fn take(
        &self,
        lines: usize,
        messages: usize,
        lease: Duration,
    ) -> Result<Vec<Turn>, Error> {
        let work = TakeWork {
            lines,
            messages,
            lease,
        };
        self.ask(work).await
    }

    async fn renew_turns(
        &self,
        turns: &[TurnHold],
        lease: Duration,
    ) -> Result<Vec<Standing>, Error> {
        let turns = turns.to_vec();
        self.ask(RenewWork { turns, lease }).await
    }

    async fn report(&self, reports: &[Report]) -> Result<Vec<Onward>, Error> {
        let reports = reports.to_vec();
        self.ask(ReportWork { reports }).await
    }

    async fn kept(&self, key: &Key) -> Result<Option<Bytes>, Error> {
        let digest = kept::digest(key);
        self.ask(KeptWork { digest }).await
    }

    async fn backlog(&self) -> Result<Backlog, Error> {
        self.ask(CountWork).await
    }

    async fn waiting(&self, limit: usize) -> Result<Vec<Waiting>, Error> {
        self.ask(ListWork { limit }).await
    }

    async fn dead(&self, after: Option<Death>, limit: usize) -> Result<Vec<DeadLetter>, Error> {
        self.ask(DeadWork { after, limit }).await
    }

    async fn redrive(&self, deaths: &[Death]) -> Result<u64, Error> {
        let deaths = deaths.to_vec();
        self.ask(RedriveWork { deaths }).await
    }

    async fn bury(&self, deaths: &[Death]) -> Result<u64, Error> {
        let deaths = deaths.to_vec();
        self.ask(BuryWork { deaths }).await
    }

    fn outbox(&self) -> Option<Self> {
        Some(self.outbox_store())
    }

    fn news(&self) -> Option<Arc<Notify>> {
        Some(Arc::clone(&self.lending().news))
    }
}
