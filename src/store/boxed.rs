//! A store whose kind is chosen at run time.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use crate::error::Error;
use crate::key::{Conversation, Key};
use crate::store::contract::{Claim, Sight, Store, Verdict};
use crate::store::lease::{Hold, Settled, Settlement, Standing, Token};
use crate::store::loan::Loan;
use crate::store::queue::arrival::{Accepted, Arrival};
use crate::store::queue::backlog::{Backlog, DeadLetter, Death};
use crate::store::queue::contract::Queue;
use crate::store::queue::turn::{Onward, Report, Turn, TurnHold, Waiting};

/// A store whose kind is chosen at run time, by [`connect`](crate::store::connect()) or by hand.
///
/// Costs one allocation per call more than the store inside, and the choice of the call at run
/// time; a clone is a reference count. What the store inside promises holds here as well.
///
/// ```
/// # use tower_idempotency::store::{BoxStore, MemoryStore};
/// let store = BoxStore::new(MemoryStore::new());
/// ```
#[derive(Clone)]
pub struct BoxStore {
    inner: Arc<dyn Dyn>,
}

impl BoxStore {
    /// Hides the kind of `store`, which holds an inbox as well.
    pub fn new(store: impl Queue) -> Self {
        Self {
            inner: Arc::new(store),
        }
    }
}

#[deny(clippy::missing_trait_methods)]
impl Store for BoxStore {
    async fn claim(&self, claim: &Claim) -> Result<Vec<Verdict>, Error> {
        self.inner.claim(claim).await
    }

    async fn renew(&self, holds: &[Hold], lease: Duration) -> Result<Vec<Standing>, Error> {
        self.inner.renew(holds, lease).await
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Settled>, Error> {
        self.inner.settle(settlements).await
    }

    async fn look(&self, keys: &[Key]) -> Result<Vec<Sight>, Error> {
        self.inner.look(keys).await
    }

    async fn forget(&self, conversation: &Conversation) -> Result<u64, Error> {
        self.inner.forget(conversation).await
    }

    async fn close(&self, conversation: &Conversation) -> Result<(), Error> {
        self.inner.close(conversation).await
    }

    async fn sweep(&self, limit: usize) -> Result<u64, Error> {
        self.inner.sweep(limit).await
    }

    fn loan(&self, run: Token) -> Option<Arc<dyn Loan>> {
        self.inner.loan(run)
    }
}

#[deny(clippy::missing_trait_methods)]
impl Queue for BoxStore {
    fn is_durable(&self) -> bool {
        self.inner.is_durable()
    }

    async fn accept(
        &self,
        arrivals: &[Arrival],
        lease: Option<Duration>,
    ) -> Result<Vec<Accepted>, Error> {
        self.inner.accept(arrivals, lease).await
    }

    async fn take(
        &self,
        lines: usize,
        messages: usize,
        lease: Duration,
    ) -> Result<Vec<Turn>, Error> {
        self.inner.take(lines, messages, lease).await
    }

    async fn renew_turns(
        &self,
        turns: &[TurnHold],
        lease: Duration,
    ) -> Result<Vec<Standing>, Error> {
        self.inner.renew_turns(turns, lease).await
    }

    async fn report(&self, reports: &[Report]) -> Result<Vec<Onward>, Error> {
        self.inner.report(reports).await
    }

    async fn kept(&self, key: &Key) -> Result<Option<Bytes>, Error> {
        self.inner.kept(key).await
    }

    async fn backlog(&self) -> Result<Backlog, Error> {
        self.inner.backlog().await
    }

    async fn waiting(&self, limit: usize) -> Result<Vec<Waiting>, Error> {
        self.inner.waiting(limit).await
    }

    async fn dead(&self, after: Option<Death>, limit: usize) -> Result<Vec<DeadLetter>, Error> {
        self.inner.dead(after, limit).await
    }

    async fn redrive(&self, deaths: &[Death]) -> Result<u64, Error> {
        self.inner.redrive(deaths).await
    }

    async fn bury(&self, deaths: &[Death]) -> Result<u64, Error> {
        self.inner.bury(deaths).await
    }

    fn outbox(&self) -> Option<Self> {
        self.inner.outbox()
    }

    fn news(&self) -> Option<Arc<Notify>> {
        self.inner.news()
    }
}

/// [`Queue`] with boxed futures, so that it can stand behind a pointer.
trait Dyn: Send + Sync {
    fn claim<'a>(&'a self, claim: &'a Claim) -> Answer<'a, Vec<Verdict>>;
    fn renew<'a>(&'a self, holds: &'a [Hold], lease: Duration) -> Answer<'a, Vec<Standing>>;
    fn settle<'a>(&'a self, settlements: &'a [Settlement]) -> Answer<'a, Vec<Settled>>;
    fn look<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Sight>>;
    fn forget<'a>(&'a self, conversation: &'a Conversation) -> Answer<'a, u64>;
    fn close<'a>(&'a self, conversation: &'a Conversation) -> Answer<'a, ()>;
    fn sweep(&self, limit: usize) -> Answer<'_, u64>;
    fn loan(&self, run: Token) -> Option<Arc<dyn Loan>>;
    fn is_durable(&self) -> bool;
    fn accept<'a>(
        &'a self,
        arrivals: &'a [Arrival],
        lease: Option<Duration>,
    ) -> Answer<'a, Vec<Accepted>>;
    fn take(&self, lines: usize, messages: usize, lease: Duration) -> Answer<'_, Vec<Turn>>;
    fn renew_turns<'a>(
        &'a self,
        turns: &'a [TurnHold],
        lease: Duration,
    ) -> Answer<'a, Vec<Standing>>;
    fn report<'a>(&'a self, reports: &'a [Report]) -> Answer<'a, Vec<Onward>>;
    fn kept<'a>(&'a self, key: &'a Key) -> Answer<'a, Option<Bytes>>;
    fn backlog(&self) -> Answer<'_, Backlog>;
    fn waiting(&self, limit: usize) -> Answer<'_, Vec<Waiting>>;
    fn dead(&self, after: Option<Death>, limit: usize) -> Answer<'_, Vec<DeadLetter>>;
    fn redrive<'a>(&'a self, deaths: &'a [Death]) -> Answer<'a, u64>;
    fn bury<'a>(&'a self, deaths: &'a [Death]) -> Answer<'a, u64>;
    fn outbox(&self) -> Option<BoxStore>;
    fn news(&self) -> Option<Arc<Notify>>;
}

type Answer<'a, A> = BoxFuture<'a, Result<A, Error>>;

impl<S: Queue> Dyn for S {
    fn claim<'a>(&'a self, claim: &'a Claim) -> Answer<'a, Vec<Verdict>> {
        Box::pin(Store::claim(self, claim))
    }

    fn renew<'a>(&'a self, holds: &'a [Hold], lease: Duration) -> Answer<'a, Vec<Standing>> {
        Box::pin(Store::renew(self, holds, lease))
    }

    fn settle<'a>(&'a self, settlements: &'a [Settlement]) -> Answer<'a, Vec<Settled>> {
        Box::pin(Store::settle(self, settlements))
    }

    fn look<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Sight>> {
        Box::pin(Store::look(self, keys))
    }

    fn forget<'a>(&'a self, conversation: &'a Conversation) -> Answer<'a, u64> {
        Box::pin(Store::forget(self, conversation))
    }

    fn close<'a>(&'a self, conversation: &'a Conversation) -> Answer<'a, ()> {
        Box::pin(Store::close(self, conversation))
    }

    fn sweep(&self, limit: usize) -> Answer<'_, u64> {
        Box::pin(Store::sweep(self, limit))
    }

    fn loan(&self, run: Token) -> Option<Arc<dyn Loan>> {
        Store::loan(self, run)
    }

    fn is_durable(&self) -> bool {
        Queue::is_durable(self)
    }

    fn accept<'a>(
        &'a self,
        arrivals: &'a [Arrival],
        lease: Option<Duration>,
    ) -> Answer<'a, Vec<Accepted>> {
        Box::pin(Queue::accept(self, arrivals, lease))
    }

    fn take(&self, lines: usize, messages: usize, lease: Duration) -> Answer<'_, Vec<Turn>> {
        Box::pin(Queue::take(self, lines, messages, lease))
    }

    fn renew_turns<'a>(
        &'a self,
        turns: &'a [TurnHold],
        lease: Duration,
    ) -> Answer<'a, Vec<Standing>> {
        Box::pin(Queue::renew_turns(self, turns, lease))
    }

    fn report<'a>(&'a self, reports: &'a [Report]) -> Answer<'a, Vec<Onward>> {
        Box::pin(Queue::report(self, reports))
    }

    fn kept<'a>(&'a self, key: &'a Key) -> Answer<'a, Option<Bytes>> {
        Box::pin(Queue::kept(self, key))
    }

    fn backlog(&self) -> Answer<'_, Backlog> {
        Box::pin(Queue::backlog(self))
    }

    fn waiting(&self, limit: usize) -> Answer<'_, Vec<Waiting>> {
        Box::pin(Queue::waiting(self, limit))
    }

    fn dead(&self, after: Option<Death>, limit: usize) -> Answer<'_, Vec<DeadLetter>> {
        Box::pin(Queue::dead(self, after, limit))
    }

    fn redrive<'a>(&'a self, deaths: &'a [Death]) -> Answer<'a, u64> {
        Box::pin(Queue::redrive(self, deaths))
    }

    fn bury<'a>(&'a self, deaths: &'a [Death]) -> Answer<'a, u64> {
        Box::pin(Queue::bury(self, deaths))
    }

    fn outbox(&self) -> Option<BoxStore> {
        Queue::outbox(self).map(BoxStore::new)
    }

    fn news(&self) -> Option<Arc<Notify>> {
        Queue::news(self)
    }
}

impl fmt::Debug for BoxStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoxStore").finish_non_exhaustive()
    }
}
