//! A transaction of the database on its way to a handler and back.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use deadpool_postgres::{ClientWrapper, Object};
use tokio::sync::{Mutex, Notify, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::error::Error;
use crate::store::lease::Token;
use crate::store::postgres::database::Database;
use crate::store::postgres::fault::Fault;
use crate::store::postgres::held::Held;
use crate::store::postgres::inbox::tidy::Tidy;

/// What all loans of a store share.
#[derive(Clone)]
pub(super) struct Lending {
    pub(super) database: Arc<Database>,
    /// The outbox's tables, in the same database.
    pub(super) outbox: Arc<Database>,
    /// Bounds the connections that are lent, so that the store keeps some for itself.
    pub(super) places: Arc<Semaphore>,
    pub(super) limit: Duration,
    pub(super) idle_limit: Duration,
    pub(super) news: Arc<Notify>,
    pub(super) tidy: Arc<Tidy>,
}

impl Lending {
    /// For the runs of an outbox's worker, whose rows are in these tables.
    pub(super) fn within(&self, database: &Arc<Database>) -> Self {
        Self {
            database: Arc::clone(database),
            ..self.clone()
        }
    }
}

/// The place of a run's transaction: with nobody, with the handler, or ended.
pub(super) struct Lent {
    pub(super) lending: Arc<Lending>,
    pub(super) run: Token,
    slot: Arc<Mutex<Slot>>,
    is_begun: AtomicBool,
}

enum Slot {
    Fresh,
    Open(Open),
    Ended,
}

/// An open transaction. Dropped, its connection is closed: the pool would hand it on with the
/// transaction open.
struct Open {
    client: Option<Arc<Object>>,
    _place: OwnedSemaphorePermit,
}

impl Open {
    /// The connection, once nobody uses it.
    fn into_held(mut self) -> Option<Held> {
        let client = self.client.take()?;
        Arc::into_inner(client).map(Held::new)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(object) = self.client.take().and_then(Arc::into_inner) {
            drop(Object::take(object));
        }
    }
}

/// A transaction on the store's own database that is committed with the record of the run, or not
/// at all: borrowed by [`Claimed::transaction`](crate::Claimed::transaction).
///
/// It dereferences to the connection, with all of its methods: `query`, `execute`, `prepare_cached`,
/// `copy_in` … `&*transaction` is deadpool-postgres' client and `&**transaction` tokio-postgres'.
///
/// # Rules
/// * No `COMMIT` and no `ROLLBACK` of the whole: the layer ends the transaction, and what a handler
///   ended by itself is found out, answered with 500 and not recorded. For a part that may fail, use
///   `SAVEPOINT` and `ROLLBACK TO SAVEPOINT`.
/// * Whoever meets an error that aborts the transaction and answers with success all the same gets
///   503 and a rollback: PostgreSQL commits nothing of an aborted transaction.
/// * Settings with `SET LOCAL` only: the connection goes back to the pool. The isolation level
///   stays READ COMMITTED, since the store renews the run's row meanwhile.
/// * Drop it before the handler returns. A handler that keeps it gets nothing committed.
///
/// One at a time: a second borrower of the same run waits for the first to drop its own.
#[must_use = "nothing is written by borrowing a transaction"]
pub struct PostgresTransaction {
    // Dropped before the guard, so that the connection is nobody else's once the slot is free.
    client: Arc<Object>,
    _slot: OwnedMutexGuard<Slot>,
}

impl Deref for PostgresTransaction {
    type Target = ClientWrapper;

    fn deref(&self) -> &ClientWrapper {
        &self.client
    }
}

impl fmt::Debug for PostgresTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresTransaction")
            .finish_non_exhaustive()
    }
}

/// How often a transaction is begun, if the connection for it turns out to be broken.
const TRIES: usize = 3;

impl Lent {
    pub(super) fn new(lending: Arc<Lending>, run: Token) -> Self {
        Self {
            lending,
            run,
            slot: Arc::new(Mutex::new(Slot::Fresh)),
            is_begun: AtomicBool::new(false),
        }
    }

    pub(super) fn is_begun(&self) -> bool {
        self.is_begun.load(Ordering::Relaxed)
    }

    /// The transaction, begun if it is not yet. Waits for a connection, and for whoever has it,
    /// within the store's limit.
    pub(super) async fn borrow(&self) -> Result<PostgresTransaction, Error> {
        let slot = Arc::clone(&self.slot).lock_owned();
        let mut slot = timeout(self.lending.limit, slot).await.map_err(|_| {
            Error::overdue("the run's transaction is in use: drop the first one before the second")
        })?;
        if let Slot::Fresh = *slot {
            *slot = Slot::Open(self.begin().await?);
            self.is_begun.store(true, Ordering::Relaxed);
        }
        let client = match &*slot {
            Slot::Open(open) => open.client.clone(),
            Slot::Fresh | Slot::Ended => None,
        };
        let client = client.ok_or_else(|| Error::rejected("the run has ended"))?;
        Ok(PostgresTransaction {
            client,
            _slot: slot,
        })
    }

    async fn begin(&self) -> Result<Open, Error> {
        let Lending { places, limit, .. } = &*self.lending;
        let begun = async {
            let place = Arc::clone(places).acquire_owned().await;
            let place =
                place.map_err(|e| Error::unavailable("the store was stopped").because(e))?;
            let client = self.connect().await?;
            Ok(Open {
                client: Some(Arc::new(client)),
                _place: place,
            })
        };
        timeout(*limit, begun).await.unwrap_or_else(|_| {
            Err(Error::overdue(
                "no connection was free for a transaction of its own",
            ))
        })
    }

    /// A connection with a transaction that can be told from any other.
    async fn connect(&self) -> Result<Object, Error> {
        let began = Instant::now();
        let sql = format!(
            "BEGIN; SET LOCAL tower.run = '{}'; \
             SET LOCAL idle_in_transaction_session_timeout = {}",
            self.run.number(),
            self.lending.idle_limit.as_millis()
        );
        let database = &self.lending.database;
        let mut tries = 1;
        loop {
            let held = database.connection().await.map_err(|f| f.error)?;
            let sent = match held.client() {
                Some(client) => client.batch_execute(&sql).await,
                None => Ok(()),
            };
            let Err(error) = sent else {
                return held.into_object().ok_or_else(no_connection);
            };
            drop(held);
            database.distrust(began);
            if tries == TRIES {
                return Err(Fault::of_statement(error).error);
            }
            tries += 1;
        }
    }

    /// Takes the connection back from the handler, its transaction open: it is begun now if the
    /// handler did not.
    pub(super) async fn take_back(&self) -> Result<Held, Error> {
        let slot = self.close().await?;
        match slot {
            Slot::Open(open) => open.into_held().ok_or_else(in_use),
            Slot::Fresh => self.begin().await?.into_held().ok_or_else(in_use),
            Slot::Ended => Err(Error::rejected("the run has ended")),
        }
    }

    /// Takes the connection back if the handler began a transaction. Nobody begins one afterwards.
    pub(super) async fn end(&self) -> Result<Option<Held>, Error> {
        let slot = self.close().await?;
        match slot {
            Slot::Open(open) => open.into_held().map(Some).ok_or_else(in_use),
            Slot::Fresh | Slot::Ended => Ok(None),
        }
    }

    async fn close(&self) -> Result<Slot, Error> {
        // Sooner than the whole is over, so that the reason is told.
        let slot = timeout(self.lending.limit / 2, self.slot.lock()).await;
        let mut slot = slot.map_err(|_| {
            Error::misconfigured("the handler returned and still holds the run's transaction")
        })?;
        Ok(std::mem::replace(&mut *slot, Slot::Ended))
    }
}

fn in_use() -> Error {
    Error::rejected("the run's transaction is in use")
}

pub(super) fn no_connection() -> Error {
    Error::unavailable("there is no connection to the database")
}
