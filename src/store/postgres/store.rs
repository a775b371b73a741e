//! The store as its users see it.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use deadpool_postgres::Pool;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::error::Error;
use crate::key::{Conversation, Key};
use crate::store::contract::{Claim, Sight, Store, Verdict, Wanted};
use crate::store::lease::{Hold, Settled, Settlement, Standing, Token};
use crate::store::loan::Loan;
use crate::store::postgres::claim::{ClaimCall, ClaimJob};
use crate::store::postgres::conversation::Chores;
use crate::store::postgres::database::Database;
use crate::store::postgres::fault::Fault;
use crate::store::postgres::id::Id;
use crate::store::postgres::inbox::chores::Swept;
use crate::store::postgres::inbox::desk::Inbox;
use crate::store::postgres::lanes::Lanes;
use crate::store::postgres::lent::Lending;
use crate::store::postgres::loan::PostgresLoan;
use crate::store::postgres::look::LookJob;
use crate::store::postgres::migrate;
use crate::store::postgres::options::PostgresOptions;
use crate::store::postgres::outbox::Outbox;
use crate::store::postgres::pool;
use crate::store::postgres::renew::{RenewCall, RenewJob};
use crate::store::postgres::settle::{SettleCall, SettleJob};
use crate::store::postgres::stand::Round;
use crate::store::postgres::sweeper::{self, Sweep, Sweeper};
use crate::store::postgres::table::Table;

/// The store in PostgreSQL: for production, and for any number of processes.
///
/// Needs PostgreSQL 13 or later and a database whose encoding is UTF8. [`migrate`](Self::migrate)
/// makes the tables; what they hold can be read with psql.
///
/// # Cost
/// A claim is one round trip, whatever its verdict; ending a run is another. Only taking over a
/// lapsed lease takes one more. Calls that wait while a statement is in flight go together in the
/// next, so that under load the store takes several times what it takes row by row; a lone call
/// waits for nothing. No connection is held while a handler runs.
///
/// # Durability
/// The store's transactions ask for `synchronous_commit = local` where the server's setting is
/// `off`, and else keep what is set. A failover to a replica that has not got all acknowledged
/// commits breaks the promises: a record that was shown is lost, its message runs again, and
/// tokens are given twice. Where that matters, set `synchronous_standby_names` on the server, and
/// fail over to a synchronous standby only.
///
/// # Failures
/// Whether a failed call may succeed later is told [by SQLSTATE](Error::is_retryable). A
/// connection that breaks, that leads to a server which became read-only, or whose call ran into
/// its [limit](PostgresOptions::limit), is closed and made anew.
///
/// # Time
/// The server's clock judges leases and retention, at the moment of each write.
///
/// # End
/// With its last handle the store stops sweeping; calls in flight go on to their end.
///
/// ```no_run
/// # async fn connect() -> Result<(), tower_idempotency::Error> {
/// use tower_idempotency::store::PostgresStore;
///
/// let store = PostgresStore::connect("postgres://chat@localhost/chat").await?;
/// store.migrate().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PostgresStore {
    inner: Arc<Inner>,
}

struct Inner {
    options: PostgresOptions,
    database: Arc<Database>,
    chores: Chores,
    claims: Lanes<ClaimJob>,
    settlements: Lanes<SettleJob>,
    renewals: Lanes<RenewJob>,
    looks: Lanes<LookJob>,
    inbox: Inbox,
    lending: Arc<Lending>,
    /// Where effects go; `None` in the outbox itself, whose effects stay there.
    outbox: Option<Outbox<PostgresStore>>,
    sweeper: OnceLock<Sweeper>,
}

impl PostgresStore {
    /// Connects to the database that a URL or a connection string names, without TLS.
    ///
    /// For TLS make a pool with the connector of your choice and use
    /// [`from_pool`](Self::from_pool). Takes one connection, to see that the database is there;
    /// the others are made when they are needed. Dropping the future leaves nothing behind. Before
    /// the first use of a database comes [`migrate`](Self::migrate), which makes the tables.
    ///
    /// # Errors
    /// [Misconfigured](Error::is_misconfigured) if the URL cannot be read, asks for TLS, or the
    /// database refuses its user; [retryable](Error::is_retryable) if there is no server.
    pub async fn connect(url: &str) -> Result<Self, Error> {
        Self::connect_with(url, &PostgresOptions::new()).await
    }

    /// [`connect`](Self::connect), with options.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_with(url: &str, options: &PostgresOptions) -> Result<Self, Error> {
        let store = Self::from_pool_with(pool::own(url, options)?, options);
        let first = timeout(options.limit, store.inner.database.connection()).await;
        first
            .map_err(|_| Error::overdue("the database did not answer in time"))?
            .map_err(|fault| fault.error)?
            .give_back();
        Ok(store)
    }

    /// The store on a pool that may be shared with the application.
    ///
    /// The store leaves no settings and no open transaction on the pool's connections, and holds
    /// one only while a statement runs. It waits for a free one no longer than its
    /// [limit](PostgresOptions::limit). Where a connection breaks or falls silent, it closes those
    /// that lay idle since before, too: they lead to the same server. Within a runtime the
    /// sweeper starts at once, else with the first call.
    pub fn from_pool(pool: Pool) -> Self {
        Self::from_pool_with(pool, &PostgresOptions::new())
    }

    /// [`from_pool`](Self::from_pool), with options.
    pub fn from_pool_with(pool: Pool, options: &PostgresOptions) -> Self {
        if options.sweep_every.is_none() {
            tracing::warn!(
                "check the options: this store has no sweeper; rows whose retention has ended stay \
                 until another process sweeps, or `sweep` is called"
            );
        }
        let places = pool::lendable(&pool, options);
        let over = move |table: &Table| {
            let database = Database::new(pool.clone(), options.prepared, table.statements());
            Arc::new(database)
        };
        let database = over(&options.table);
        let outbox = Outbox::new(&options.table, over);
        let lending = outbox.lending(&database, places, options);
        Self::over(database, options, lending, Some(outbox))
    }

    /// The store over a database's tables.
    fn over(
        database: Arc<Database>,
        options: &PostgresOptions,
        lending: Lending,
        outbox: Option<Outbox<Self>>,
    ) -> Self {
        let (most, limit) = (options.lanes, options.limit);
        let share = || Arc::clone(&database);
        let inbox = Inbox::new(&database, options);
        let lending = Lending {
            tidy: Arc::clone(&inbox.tidy),
            ..lending
        };
        let store = Self {
            inner: Arc::new(Inner {
                options: options.clone(),
                chores: Chores::of(&options.table),
                claims: Lanes::new(ClaimJob::new(share()), most, limit),
                settlements: Lanes::new(SettleJob(share()), most, limit),
                renewals: Lanes::new(RenewJob(share()), most, limit),
                looks: Lanes::new(LookJob(share()), most, limit),
                inbox,
                lending: Arc::new(lending),
                outbox,
                sweeper: OnceLock::new(),
                database,
            }),
        };
        store.start_sweeper();
        store
    }

    /// Makes the store's tables, or brings them to this version; does nothing if they are there.
    ///
    /// Any number of processes may do so at once. Needs the right to create tables, and for a
    /// schema that is not there, to create schemas; where the tables are there, only to read.
    /// Dropping the future leaves all or nothing.
    ///
    /// # Errors
    /// [Misconfigured](Error::is_misconfigured) if the database's encoding is not UTF8 or the
    /// user may not create tables; [retryable](Error::is_retryable) if the server is not there.
    pub async fn migrate(&self) -> Result<(), Error> {
        let table = &self.inner.options.table;
        migrate::migrate(&self.inner.database, table).await?;
        migrate::migrate(&self.inner.database, &table.outbox()).await
    }

    /// The SQL that [`migrate`](Self::migrate) runs, for a migration tool of your own.
    pub fn schema(options: &PostgresOptions) -> String {
        migrate::schema(&options.table)
    }

    /// What the inbox asks of the server.
    pub(super) fn inbox(&self) -> &Inbox {
        &self.inner.inbox
    }

    /// The store over the outbox's tables.
    pub(super) fn outbox_store(&self) -> Self {
        let Some(outbox) = &self.inner.outbox else {
            return self.clone();
        };
        let make = || {
            let options = self.inner.options.for_outbox();
            let lending = self.inner.lending.within(&outbox.database);
            Self::over(Arc::clone(&outbox.database), &options, lending, None)
        };
        outbox.store.get_or_init(make).clone()
    }

    /// Told when effects were put into the outbox.
    pub(super) fn news_of_effects(&self) -> Arc<Notify> {
        Arc::clone(&self.inner.lending.news)
    }

    pub(super) fn start_sweeper(&self) {
        let Some(every) = self.inner.options.sweep_every else {
            return;
        };
        if self.inner.sweeper.get().is_none()
            && let Some(sweeper) = sweeper::start(Arc::downgrade(&self.inner), every)
        {
            // Of two that start at once one is stopped by being dropped.
            drop(self.inner.sweeper.set(sweeper));
        }
    }
}

/// Each call is one transaction on the server. Dropped while it waits in line, it is not sent;
/// dropped later, it is applied or not, as a whole.
impl Store for PostgresStore {
    async fn claim(&self, claim: &Claim) -> Result<Vec<Verdict>, Error> {
        self.start_sweeper();
        let mut verdicts: Vec<Option<Verdict>> = Vec::new();
        verdicts.resize_with(claim.wanted.len(), || None);
        let began = Instant::now();
        for round in 0..ROUNDS {
            let open = claim.wanted.iter().zip(&verdicts);
            let open = open.filter(|(_, verdict)| verdict.is_none());
            let wanted: Vec<(Id, Wanted)> = open.map(|(wanted, _)| with_id(wanted)).collect();
            if wanted.is_empty() || began.elapsed() > self.inner.options.limit {
                break;
            }
            let answers = self.inner.claim_once(claim, wanted, round).await?;
            let missing = verdicts.iter_mut().filter(|verdict| verdict.is_none());
            for (place, answer) in missing.zip(answers) {
                *place = answer;
            }
        }
        let changing = || Error::unavailable("a key's row changed each time it was claimed");
        verdicts
            .into_iter()
            .collect::<Option<_>>()
            .ok_or_else(changing)
    }

    async fn renew(&self, holds: &[Hold], lease: Duration) -> Result<Vec<Standing>, Error> {
        if holds.is_empty() {
            return Ok(Vec::new());
        }
        self.inner.renewals.ask(RenewCall::new(holds, lease)).await
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Settled>, Error> {
        if settlements.is_empty() {
            return Ok(Vec::new());
        }
        self.inner
            .settlements
            .ask(SettleCall::new(settlements)?)
            .await
    }

    async fn look(&self, keys: &[Key]) -> Result<Vec<Sight>, Error> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.inner
            .looks
            .ask(keys.iter().map(Id::of_key).collect())
            .await
    }

    async fn forget(&self, conversation: &Conversation) -> Result<u64, Error> {
        let id = Id::of_conversation(conversation);
        let mut messages = self.inner.inbox.forget(conversation).await?;
        if let Some(outbox) = &self.inner.outbox {
            messages += self.inner.within_limit(outbox.forget(id)).await?;
        }
        let forgotten = self.inner.chores.forget(&self.inner.database, id);
        Ok(self.inner.within_limit(forgotten).await? + messages)
    }

    async fn close(&self, conversation: &Conversation) -> Result<(), Error> {
        let id = Id::of_conversation(conversation);
        self.inner.inbox.close(conversation).await?;
        let closed = self.inner.chores.close(&self.inner.database, id);
        self.inner.within_limit(closed).await
    }

    async fn sweep(&self, limit: usize) -> Result<u64, Error> {
        Ok(self.inner.sweep(limit).await?.swept)
    }

    fn loan(&self, run: Token) -> Option<Arc<dyn Loan>> {
        let lending = Arc::clone(&self.inner.lending);
        Some(Arc::new(PostgresLoan::new(lending, run)))
    }
}

/// How often a key is claimed whose row goes away, or is held by somebody, at that very moment.
const ROUNDS: u32 = 7;

fn with_id(wanted: &Wanted) -> (Id, Wanted) {
    (Id::of_key(&wanted.key), wanted.clone())
}

impl Sweep for Inner {
    async fn step(&self, limit: usize) -> Result<u64, Error> {
        Ok(self.sweep(limit).await?.looked)
    }

    async fn tidy(&self) -> Result<(), Error> {
        self.inbox.tidy().await
    }
}

impl Inner {
    /// Removes records first, then keys of the inbox.
    async fn sweep(&self, limit: usize) -> Result<Swept, Error> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let records = self.chores.sweep(&self.database, limit);
        let records = self.within_limit(records).await?;
        let left = limit.saturating_sub_unsigned(records).max(0);
        let keys = self.inbox.sweep(left).await?;
        Ok(Swept {
            swept: records + keys.swept,
            looked: records + keys.looked,
        })
    }

    /// Claims what is open, from the second time on after a growing pause.
    async fn claim_once(
        &self,
        claim: &Claim,
        wanted: Vec<(Id, Wanted)>,
        round: u32,
    ) -> Result<Vec<Option<Verdict>>, Error> {
        if round > 0 {
            let pause = Duration::from_millis(1 << round);
            sleep(pause.mul_f64(rand::random_range(0.5..1.5))).await;
        }
        let call = ClaimCall {
            nonce: Id::of_nonce(claim.nonce),
            lease: claim.lease,
            unknown_for: claim.unknown_for,
            wanted,
            round: if round < ROUNDS - 1 {
                Round::Early
            } else {
                Round::Last
            },
        };
        self.claims.ask(call).await
    }

    async fn within_limit<T>(
        &self,
        call: impl Future<Output = Result<T, Fault>> + Send,
    ) -> Result<T, Error> {
        match timeout(self.options.limit, call).await {
            Ok(answer) => answer.map_err(|fault| fault.error),
            Err(_) => Err(Error::overdue("the database did not answer in time")),
        }
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("options", &self.inner.options)
            .finish_non_exhaustive()
    }
}
