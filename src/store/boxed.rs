//! A store whose kind is chosen at run time.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::error::Error;
use crate::key::{Conversation, Key};
use crate::store::contract::{Claim, Hold, Settled, Settlement, Sight, Standing, Store, Verdict};

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
    /// Hides the kind of `store`.
    pub fn new(store: impl Store) -> Self {
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
}

/// [`Store`] with boxed futures, so that it can stand behind a pointer.
trait Dyn: Send + Sync {
    fn claim<'a>(&'a self, claim: &'a Claim) -> Answer<'a, Vec<Verdict>>;
    fn renew<'a>(&'a self, holds: &'a [Hold], lease: Duration) -> Answer<'a, Vec<Standing>>;
    fn settle<'a>(&'a self, settlements: &'a [Settlement]) -> Answer<'a, Vec<Settled>>;
    fn look<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Sight>>;
    fn forget<'a>(&'a self, conversation: &'a Conversation) -> Answer<'a, u64>;
    fn close<'a>(&'a self, conversation: &'a Conversation) -> Answer<'a, ()>;
    fn sweep(&self, limit: usize) -> Answer<'_, u64>;
}

type Answer<'a, A> = BoxFuture<'a, Result<A, Error>>;

impl<S: Store> Dyn for S {
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
}

impl fmt::Debug for BoxStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoxStore").finish_non_exhaustive()
    }
}
