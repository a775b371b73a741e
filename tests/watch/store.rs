//! A store in memory that fails as it is told.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tower_idempotency::store::{
    Claim, Hold, MemoryStore, Settled, Settlement, Sight, Standing, Store, Verdict,
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
            Mood::Well | Mood::SettlesNothing => call.await,
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
}
