//! Where effects go: an inbox of its own, in tables of its own.

use std::sync::{Arc, OnceLock};

use tokio::sync::Semaphore;

use crate::store::postgres::database::Database;
use crate::store::postgres::fault::Fault;
use crate::store::postgres::id::Id;
use crate::store::postgres::inbox::chores::Chores;
use crate::store::postgres::inbox::tidy::Tidy;
use crate::store::postgres::lent::Lending;
use crate::store::postgres::options::PostgresOptions;
use crate::store::postgres::table::Table;

/// The outbox's tables, and a store over them once somebody works on it.
pub(super) struct Outbox<S> {
    chores: Chores,
    pub(super) database: Arc<Database>,
    pub(super) store: OnceLock<S>,
}

impl<S: Sync> Outbox<S> {
    /// The outbox of the store whose main table this is.
    pub(super) fn new(table: &Table, over: impl Fn(&Table) -> Arc<Database>) -> Self {
        let table = table.outbox();
        Self {
            chores: Chores::of(&table),
            database: over(&table),
            store: OnceLock::new(),
        }
    }

    /// What loans need that put their effects here.
    pub(super) fn lending(
        &self,
        database: &Arc<Database>,
        places: usize,
        options: &PostgresOptions,
    ) -> Lending {
        Lending {
            database: Arc::clone(database),
            outbox: Arc::clone(&self.database),
            places: Arc::new(Semaphore::new(places)),
            limit: options.limit,
            idle_limit: options.idle_limit,
            news: Arc::default(),
            tidy: Arc::new(Tidy::of(&options.table)),
        }
    }

    /// Drops the effects of a conversation, and counts them.
    pub(super) async fn forget(&self, conversation: Id) -> Result<u64, Fault> {
        self.chores.drop_line(&self.database, conversation).await
    }
}
