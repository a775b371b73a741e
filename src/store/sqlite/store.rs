//! The store's handle: questions go to its threads, answers come back.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::error::Error;
use crate::key::{Conversation, Key};
use crate::store::contract::{Claim, Sight, Store, Verdict};
use crate::store::lease::{Hold, Settled, Settlement, Standing, Token};
use crate::store::loan::Loan;
use crate::store::sqlite::batch::Batch;
use crate::store::sqlite::claim::ClaimWork;
use crate::store::sqlite::connection;
use crate::store::sqlite::conversation::{CloseWork, ForgetWork};
use crate::store::sqlite::job::{self, Abandoned, Work};
use crate::store::sqlite::kept;
use crate::store::sqlite::lent::Call;
use crate::store::sqlite::loan::{Lending, SqliteLoan};
use crate::store::sqlite::options::SqliteOptions;
use crate::store::sqlite::post::{self, Post};
use crate::store::sqlite::reader::{self, Look};
use crate::store::sqlite::renew::RenewWork;
use crate::store::sqlite::settle::SettleWork;
use crate::store::sqlite::sweep::{Rest, SweepWork};
use crate::store::sqlite::sweeper::Sweeper;
use crate::store::sqlite::tables::Tables;
use crate::store::sqlite::thread;
use crate::store::sqlite::writer::Writer;

/// The store in one SQLite file: no server, and nothing acknowledged is lost with the process.
///
/// Several processes of one machine may share the file. It must lie on a local file system: a
/// write-ahead log does not work over a network. Beside the file lie two more, `-wal` and `-shm`,
/// which belong to it while it is open and after a crash.
///
/// # Durability
/// A call is answered when its transaction is on the disk (`synchronous = FULL`). A killed process
/// or a power cut loses no more than calls that were not answered.
///
/// # Cost
/// A flush of the disk for each transaction. Calls that wait while one is written go together in
/// the next, so the flush is shared by all calls in flight: with 64 of them the store takes many
/// times the claims that it takes one by one. Two threads serve all handles of a store; a handle's
/// clone is a reference count. A key takes about 250 bytes of the file beside its record.
///
/// # Time
/// The machine's clock judges leases and retention, in milliseconds.
///
/// # End
/// The threads end when the last handle is dropped, after the calls that were sent before; or by
/// [`shutdown`](Self::shutdown), which says when the file is closed. A process that ends without
/// either loses nothing either.
///
/// # Forgetting
/// What [`forget`](Store::forget) removes is overwritten in the database file. The log beside it
/// may hold the old bytes until it is written over.
///
/// ```
/// # use tower_idempotency::store::SqliteStore;
/// # let folder = tempfile::tempdir()?;
/// let store = SqliteStore::open(folder.path().join("chat.db"))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
    /// Which queue this handle is about.
    tables: Tables,
}

struct Inner {
    writer: Post<Call>,
    reader: Post<Look>,
    places: Arc<Semaphore>,
    lending: Lending,
}

impl SqliteStore {
    /// Opens the file at `path` and makes it if it is not there; its folder must be there.
    ///
    /// Takes some milliseconds and blocks the thread for them, so it belongs to the start of a
    /// program. Any number of processes may open a new file at once.
    ///
    /// # Errors
    /// [Misconfigured](Error::is_misconfigured) if the file cannot be opened or written, is no
    /// SQLite database, or was written by a later version of this store;
    /// [corrupt](Error::is_corrupt) if it is damaged; [retryable](Error::is_retryable) if another
    /// process holds it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::with_options(path, &SqliteOptions::new())
    }

    /// [`open`](Self::open), with options.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn with_options(path: impl AsRef<Path>, options: &SqliteOptions) -> Result<Self, Error> {
        let path = connection::full_path(path.as_ref())?;
        if options.sweep_every.is_none() {
            tracing::warn!(
                "check the options: this store has no sweeper; rows whose retention has ended stay \
                 until another process sweeps, or `sweep` is called"
            );
        }
        let writing = connection::writing(&path, options.busy_limit)?;
        let reading = connection::reading(&path, options.busy_limit)?;
        let (writer, calls) = Post::new();
        let (reader, looks) = Post::new();
        let sweeper = Sweeper::new(options.sweep_every);
        let idle_limit = options.idle_limit;
        thread::start("sqlite-writer", move || {
            Writer::new(writing, calls, sweeper, idle_limit).run();
        })?;
        thread::start("sqlite-reader", move || reader::run(reading, &looks))?;
        Ok(Self {
            inner: Arc::new(Inner {
                writer: writer.clone(),
                reader,
                places: Arc::new(Semaphore::new(PLACES)),
                lending: Lending {
                    writer,
                    limit: options.busy_limit + options.idle_limit,
                    news: Arc::default(),
                },
            }),
            tables: Tables::default(),
        })
    }

    /// Closes the file once the calls that were sent before are answered.
    ///
    /// Calls that come later, through any handle, fail with a [retryable](Error::is_retryable)
    /// error. Afterwards nothing of this store touches the file, so that it may be moved. If the
    /// future is dropped, the store is closed all the same.
    pub async fn shutdown(&self) {
        self.inner.writer.stop().await;
        self.inner.reader.stop().await;
    }

    /// Has the writer do some work on this handle's queue.
    pub(super) async fn ask<W: Work>(&self, work: W) -> Result<W::Answer, Error> {
        let tables = self.tables;
        self.inner.ask(On { tables, work }).await
    }

    /// The handle on the outbox.
    pub(super) fn outbox_store(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            tables: Tables::Outbox,
        }
    }

    pub(super) fn lending(&self) -> &Lending {
        &self.inner.lending
    }
}

/// Work on one of the queues.
struct On<W> {
    tables: Tables,
    work: W,
}

impl<W: Work> Work for On<W> {
    type Answer = W::Answer;

    const ABANDONED: Abandoned = W::ABANDONED;

    fn perform(&self, batch: &mut Batch<'_>) -> Result<W::Answer, Error> {
        let before = batch.turn_to(self.tables);
        let answer = self.work.perform(batch);
        batch.turn_to(before);
        answer
    }
}

/// A call waits for its place and then for its transaction. Dropped in between, a claim, a renewal
/// or a sweep that was not begun is not done; what ends a run or a conversation is done.
impl Store for SqliteStore {
    async fn claim(&self, claim: &Claim) -> Result<Vec<Verdict>, Error> {
        let found = self.inner.ask(ClaimWork::new(claim)).await?;
        let keys = claim.wanted.iter().map(|wanted| &wanted.key);
        found
            .into_iter()
            .zip(keys)
            .map(|(found, key)| found.verdict(key))
            .collect()
    }

    async fn renew(&self, holds: &[Hold], lease: Duration) -> Result<Vec<Standing>, Error> {
        self.inner.ask(RenewWork::new(holds, lease)).await
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Settled>, Error> {
        self.inner.ask(SettleWork::new(settlements)?).await
    }

    async fn look(&self, keys: &[Key]) -> Result<Vec<Sight>, Error> {
        let (look, reply) = Look::new(keys.iter().map(kept::digest).collect());
        self.inner.reader.send(look)?;
        let seen = reply.await.map_err(|_| post::closed())??;
        seen.into_iter().map(reader::Seen::sight).collect()
    }

    async fn forget(&self, conversation: &Conversation) -> Result<u64, Error> {
        self.inner.ask(ForgetWork::new(conversation)?).await
    }

    async fn close(&self, conversation: &Conversation) -> Result<(), Error> {
        self.inner.ask(CloseWork::new(conversation)).await
    }

    async fn sweep(&self, limit: usize) -> Result<u64, Error> {
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        let mut removed = 0;
        loop {
            let limit = limit - removed;
            let swept = self.inner.ask(SweepWork { limit }).await?;
            removed += swept.removed;
            if swept.rest == Rest::None || removed >= limit {
                return Ok(removed);
            }
        }
    }

    fn loan(&self, run: Token) -> Option<Arc<dyn Loan>> {
        // Only one transaction is open at a time: it needs no name.
        let _ = run;
        Some(Arc::new(SqliteLoan::new(&self.inner.lending, self.tables)))
    }
}

impl Inner {
    async fn ask<W: Work>(&self, work: W) -> Result<W::Answer, Error> {
        let place = Arc::clone(&self.places).acquire_owned();
        let place = place.await.map_err(|_| post::closed())?;
        let (job, reply) = job::ask(work, place);
        self.writer.send(Call::Job(job))?;
        reply.await.map_err(|_| post::closed())?
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").finish_non_exhaustive()
    }
}

/// How many calls may wait for the writer; more wait for a place. Bounds the memory that waiting
/// calls take.
const PLACES: usize = 4096;
