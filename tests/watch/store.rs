//! A store in memory that fails as it is told.

use std::fmt;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tower_idempotency::store::{
    Arrival, Claim, Committed, Hold, Loan, MemoryStore, Onward, Report, Settled, Settlement, Sight,
    Standing, Store, Token, Verdict,
};
use tower_idempotency::{Conversation, Error, Key};

/// What the store does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mood {
    #[default]
    Well,
    /// Every call fails.
    Fails,
    /// No call is answered.
    Hangs,
    /// No run can be ended.
    SettlesNothing,
    /// Transactions that are lent come to nothing.
    CommitsNothing,
}

/// A store in memory that fails as it is told.
#[derive(Clone, Default)]
pub(crate) struct Moody {
    inner: MemoryStore,
    mood: Arc<Mutex<Mood>>,
}

impl Moody {
    pub(crate) fn is(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    async fn call<T>(
        &self,
        call: impl Future<Output = Result<T, Error>> + Send,
        may_settle: bool,
    ) -> Result<T, Error> {
        let mood = *self.mood.lock().unwrap();
        match mood {
            Mood::Fails => Err(Error::unavailable("told to fail")),
            Mood::SettlesNothing if !may_settle => Err(Error::unavailable("told not to settle")),
            Mood::Hangs => pending().await,
            Mood::Well | Mood::SettlesNothing | Mood::CommitsNothing => call.await,
        }
    }
}

impl Store for Moody {
    async fn claim(&self, claim: &Claim) -> Result<Vec<Verdict>, Error> {
        self.call(self.inner.claim(claim), true).await
    }

    async fn renew(&self, holds: &[Hold], lease: Duration) -> Result<Vec<Standing>, Error> {
        self.call(self.inner.renew(holds, lease), true).await
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Settled>, Error> {
        self.call(self.inner.settle(settlements), false).await
    }

    async fn look(&self, keys: &[Key]) -> Result<Vec<Sight>, Error> {
        self.call(self.inner.look(keys), true).await
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

    fn loan(&self, _run: Token) -> Option<Arc<dyn Loan>> {
        Some(Arc::new(Lent(self.clone())))
    }
}

/// A transaction of which nothing but its end is of interest.
struct Lent(Moody);

impl Loan for Lent {
    fn is_begun(&self) -> bool {
        false
    }

    fn record<'a>(
        &'a self,
        _effects: &'a [Arrival],
        settlements: &'a [Settlement],
    ) -> BoxFuture<'a, Result<Committed<()>, Error>> {
        Box::pin(async {
            if *self.0.mood.lock().unwrap() == Mood::CommitsNothing {
                let why = Error::unavailable("told not to commit");
                return Ok(Committed::RolledBack(why));
            }
            self.0.inner.settle(settlements).await?;
            Ok(Committed::Applied(()))
        })
    }

    fn report<'a>(
        &'a self,
        _effects: &'a [Arrival],
        _report: &'a Report,
    ) -> BoxFuture<'a, Result<Committed<Onward>, Error>> {
        unreachable!("the store has no inbox")
    }

    fn roll_back(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent").finish_non_exhaustive()
    }
}
