//! Each kind of store, holding nothing, and doubles that fail as real ones do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use tower_idempotency::store::{
    BoxStore, Claim, Hold, MemoryStore, PostgresOptions, PostgresStore, Settled, Settlement, Sight,
    SqliteStore, Standing, Store, Verdict,
};
use tower_idempotency::{Conversation, Error, Key};

use crate::database::{Schema, url};

/// What must outlive a store.
pub(crate) enum Held {
    Nothing,
    Folder(#[expect(dead_code, reason = "removed when dropped")] TempDir),
    Schema(#[expect(dead_code, reason = "removed when dropped")] Schema),
}

/// One store of each kind.
pub(crate) async fn all() -> Vec<(&'static str, BoxStore, Held)> {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open(folder.path().join("keys.db")).unwrap();
    let schema = Schema::new(&url());
    let options = PostgresOptions::with_table(&schema.table()).unwrap();
    let postgres = PostgresStore::connect_with(&url(), &options).await.unwrap();
    postgres.migrate().await.unwrap();
    vec![
        ("memory", BoxStore::new(MemoryStore::new()), Held::Nothing),
        ("sqlite", BoxStore::new(sqlite), Held::Folder(folder)),
        ("postgres", BoxStore::new(postgres), Held::Schema(schema)),
    ]
}

/// A store in memory that can be made to fail, and counts its calls.
#[derive(Clone, Default)]
pub(crate) struct Double {
    inner: MemoryStore,
    pub(crate) does: Arc<Does>,
}

/// What a double does, and what it did.
#[derive(Default)]
pub(crate) struct Does {
    /// Every call fails.
    pub(crate) fails: AtomicBool,
    /// Looks see nothing, as on a replica that is far behind.
    pub(crate) is_behind: AtomicBool,
    pub(crate) claims: AtomicU64,
    pub(crate) settlements: AtomicU64,
    pub(crate) others: AtomicU64,
}

impl Does {
    fn call(&self, count: &AtomicU64) -> Result<(), Error> {
        count.fetch_add(1, Ordering::SeqCst);
        if self.fails.load(Ordering::SeqCst) {
            return Err(Error::unavailable("the store is away"));
        }
        Ok(())
    }

    pub(crate) fn calls(&self) -> u64 {
        [&self.claims, &self.settlements, &self.others]
            .map(|count| count.load(Ordering::SeqCst))
            .iter()
            .sum()
    }
}

impl Store for Double {
    async fn claim(&self, claim: &Claim) -> Result<Vec<Verdict>, Error> {
        self.does.call(&self.does.claims)?;
        self.inner.claim(claim).await
    }

    async fn renew(&self, holds: &[Hold], lease: Duration) -> Result<Vec<Standing>, Error> {
        self.does.call(&self.does.others)?;
        self.inner.renew(holds, lease).await
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Settled>, Error> {
        self.does.call(&self.does.settlements)?;
        self.inner.settle(settlements).await
    }

    async fn look(&self, keys: &[Key]) -> Result<Vec<Sight>, Error> {
        self.does.call(&self.does.others)?;
        if self.does.is_behind.load(Ordering::SeqCst) {
            return Ok(keys.iter().map(|_| Sight::Absent).collect());
        }
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
