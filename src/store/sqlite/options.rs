//! What can be set when a file is opened.

use std::time::Duration;

/// How a [`SqliteStore`](crate::store::SqliteStore) is opened.
///
/// ```
/// # use std::time::Duration;
/// # use tower_idempotency::store::{SqliteOptions, SqliteStore};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("chat.db");
/// let options = SqliteOptions::new()
///     .busy_limit(Duration::from_secs(2))
///     .sweep_every(Duration::from_secs(60));
/// let store = SqliteStore::with_options(path, &options)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    pub(super) busy_limit: Duration,
    pub(super) sweep_every: Option<Duration>,
    pub(super) idle_limit: Duration,
}

impl SqliteOptions {
    /// The defaults; see the setters.
    pub fn new() -> Self {
        Self {
            busy_limit: Duration::from_secs(5),
            sweep_every: Some(Duration::from_secs(10)),
            idle_limit: Duration::from_secs(2),
        }
    }

    /// How long a transaction waits while another process writes to the file; then its calls fail
    /// with a [retryable](crate::Error::is_retryable) error. Default: 5 s.
    pub fn busy_limit(mut self, limit: Duration) -> Self {
        self.busy_limit = limit;
        self
    }

    /// How long a transaction that a run borrowed may lie idle; then it is rolled back, and the run
    /// fails. Default: 2 s.
    ///
    /// A file has one writer: while a run has its transaction, all other calls wait.
    pub fn idle_limit(mut self, limit: Duration) -> Self {
        self.idle_limit = limit;
        self
    }

    /// How often the store looks for rows whose retention has ended. Default: 10 s.
    ///
    /// A look that finds none costs a few microseconds and writes nothing. What it finds is
    /// removed in small steps between the calls.
    pub fn sweep_every(mut self, interval: Duration) -> Self {
        self.sweep_every = Some(interval);
        self
    }

    /// Rows stay until [`Store::sweep`](crate::store::Store::sweep) is called, or until another
    /// process on the file sweeps.
    ///
    /// The store says so in a warning when it is made.
    pub fn without_sweeper(mut self) -> Self {
        self.sweep_every = None;
        self
    }
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self::new()
    }
}
