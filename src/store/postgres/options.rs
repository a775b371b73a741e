//! What can be set when the store is made.

use std::time::Duration;

use crate::error::Error;
use crate::store::postgres::table::Table;

/// How a [`PostgresStore`](crate::store::PostgresStore) works.
///
/// ```
/// # use std::time::Duration;
/// # use tower_idempotency::store::{PostgresOptions, Prepared};
/// let options = PostgresOptions::with_table("chat.seen")?
///     .limit(Duration::from_secs(2))
///     .prepared(Prepared::Never)
///     .sweep_every(Duration::from_secs(300));
/// # Ok::<(), tower_idempotency::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    pub(super) table: Table,
    pub(super) limit: Duration,
    pub(super) lanes: usize,
    pub(super) prepared: Prepared,
    pub(super) sweep_every: Option<Duration>,
    pub(super) transactions: usize,
    pub(super) idle_limit: Duration,
}

/// Whether statements are prepared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Prepared {
    /// Once per connection. Right for direct connections, and for poolers that follow prepared
    /// statements, such as PgBouncer from 1.21 with `max_prepared_statements`.
    ///
    /// Behind a pooler that does not, the first refused statement is sent again as text, and all
    /// later ones too.
    #[default]
    PerConnection,
    /// Never: each statement is sent as text. For poolers in transaction mode. Costs some 30 µs
    /// of the server's time per statement.
    Never,
}

impl PostgresOptions {
    /// The defaults; see the setters.
    pub fn new() -> Self {
        Self {
            table: Table::default(),
            limit: Duration::from_secs(5),
            lanes: 4,
            prepared: Prepared::default(),
            sweep_every: Some(Duration::from_mins(1)),
            transactions: 32,
            idle_limit: Duration::from_secs(30),
        }
    }

    /// The main table is called `name`, or `schema.name`; the schema need not be on the search
    /// path. What else the store makes is called `name_…`. Default: `idempotency`.
    ///
    /// # Errors
    /// [Misconfigured](Error::is_misconfigured) unless both parts are lower-case letters, digits
    /// and `_`, of up to 40 characters, and begin with no digit.
    pub fn with_table(name: &str) -> Result<Self, Error> {
        Ok(Self {
            table: Table::parse(name)?,
            ..Self::new()
        })
    }

    /// How long a call may take, waiting for a connection included; then it fails with an error
    /// that is [overdue](Error::is_overdue), and whether it was applied is unknown. Default: 5 s.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// How many statements of one kind may be in flight at once, at most. Default: 4.
    ///
    /// Where the server's disk is fast, one at a time claims and records, up to three replay, and up
    /// to two accept for an inbox if many messages come at once; more are used only while statements
    /// take long. The store uses up to twice as many connections, and a few for looking and sweeping;
    /// where it holds an inbox, twice as many again.
    pub fn lanes(mut self, most: usize) -> Self {
        self.lanes = most.max(1);
        self
    }

    /// How many runs may have a transaction of their own at once; others wait, within the store's
    /// [limit](Self::limit). Default: 32.
    ///
    /// Each holds a connection while its handler runs. A pool of the store's own has so many more;
    /// of a pool that is given at least a half is left to the store and to others.
    pub fn transactions(mut self, most: usize) -> Self {
        self.transactions = most.max(1);
        self
    }

    /// How long a transaction that was lent may lie idle between two statements; then the server
    /// ends it, and the run fails. Default: 30 s.
    ///
    /// A process that is paused, or a handler that hangs, holds the locks of what it wrote for no
    /// longer than this.
    pub fn idle_limit(mut self, limit: Duration) -> Self {
        self.idle_limit = limit;
        self
    }

    /// Whether statements are prepared. Default: [`Prepared::PerConnection`].
    pub fn prepared(mut self, prepared: Prepared) -> Self {
        self.prepared = prepared;
        self
    }

    /// How often the store looks for rows whose retention has ended. Default: one minute.
    ///
    /// A look that finds none reads two index pages. What it finds is removed in batches of a
    /// thousand with pauses between them, as long as there is more. Any number of processes may
    /// sweep the same tables.
    ///
    /// With it comes vacuuming: while an inbox is busy, its two tables that are written and emptied
    /// all the time are vacuumed every five seconds or so, by one process at a time. That asks for
    /// a user that owns the tables; for another one the store warns once, and leaves it to
    /// autovacuum.
    pub fn sweep_every(mut self, interval: Duration) -> Self {
        self.sweep_every = Some(interval);
        self
    }

    /// The same for the outbox's tables.
    pub(super) fn for_outbox(&self) -> Self {
        Self {
            table: self.table.outbox(),
            ..self.clone()
        }
    }

    /// Rows stay until [`Store::sweep`](crate::store::Store::sweep) is called, or until another
    /// process sweeps, and no table is vacuumed but by the server. A row whose retention has ended
    /// counts as absent all the same.
    ///
    /// The store says so in a warning when it is made.
    pub fn without_sweeper(mut self) -> Self {
        self.sweep_every = None;
        self
    }
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self::new()
    }
}
