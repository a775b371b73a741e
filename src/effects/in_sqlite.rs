//! A run's transaction in SQLite.

use std::any::Any;

use rusqlite::Connection;

use crate::claimed::Claimed;
use crate::error::Error;
use crate::store::sqlite::loan::SqliteLoan;

impl Claimed {
    /// Runs `work` in a transaction on the store's own file, which is committed with the record of
    /// this run: what it writes is in force exactly if the message is done.
    ///
    /// `work` runs on the store's writing thread, so it must not wait for anything. It may be
    /// called several times; after an error everything that this `work` wrote is undone, and the
    /// rest stays. The layer commits after the handler has answered with success and before the
    /// caller sees that; an error, a panic, any other answer, and a run that lost its lease are
    /// rolled back. An answer waits for the commit, so it does not stream. `COMMIT` and `ROLLBACK`
    /// are the layer's: they are found out, answered with 500, and nothing is recorded.
    ///
    /// A file has one writer: from the first call to the end of the run all other calls to the
    /// store wait, so make this the last thing that the handler does. A run that does nothing for
    /// the [idle limit](crate::store::SqliteOptions::idle_limit) is rolled back.
    ///
    /// # Errors
    /// [Misconfigured](Error::is_misconfigured) if the layer's store is not in SQLite; rejected,
    /// with the [`rusqlite::Error`] as its source, if `work` fails; [overdue](Error::is_overdue) if
    /// other runs have the file for too long; else if the transaction is over. Dropped, `work` may
    /// have run or not.
    ///
    /// # Panics
    /// If `work` does, as it did.
    ///
    /// ```
    /// # use tower_idempotency::{Claimed, Error};
    /// # async fn handle(claimed: &Claimed, text: String) -> Result<i64, Error> {
    /// let id = claimed.in_transaction(move |connection| {
    ///     connection.execute("INSERT INTO orders (text) VALUES (?1)", [text])?;
    ///     Ok(connection.last_insert_rowid())
    /// });
    /// id.await
    /// # }
    /// ```
    pub async fn in_transaction<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let loan: &dyn Any = match self.loan() {
            Some(loan) => &**loan,
            None => return Err(of_other_store()),
        };
        match loan.downcast_ref::<SqliteLoan>() {
            Some(loan) => loan.work(work).await,
            None => Err(of_other_store()),
        }
    }
}

fn of_other_store() -> Error {
    Error::misconfigured("the layer's store is not in SQLite, or of a form that hides it")
}
