//! A run's transaction in PostgreSQL.

use std::any::Any;

use crate::claimed::Claimed;
use crate::error::Error;
use crate::store::postgres::lent::PostgresTransaction;
use crate::store::postgres::loan::PostgresLoan;

impl Claimed {
    /// A transaction on the store's own database, which is committed with the record of this run:
    /// what is written in it is in force exactly if the message is done.
    ///
    /// Begun by the first call, on a connection of the store's pool, and held until the run ends.
    /// The layer commits it after the handler has answered with success and before the caller
    /// sees that; an error, a panic, any other answer, and a run that lost its lease are rolled
    /// back. An answer waits for the commit, so it does not stream. See
    /// [`PostgresTransaction`] for what not to do in it.
    ///
    /// Costs one round trip to begin and one to end, which is not shared with the ends of other
    /// runs, and a connection while the handler runs, of
    /// [so many](crate::store::PostgresOptions::transactions).
    ///
    /// # Errors
    /// [Misconfigured](Error::is_misconfigured) if the layer's store is not in PostgreSQL;
    /// [overdue](Error::is_overdue) if no connection is free within the store's limit, or another
    /// task of the same run has the transaction; else if the database is not there or the run is
    /// over. Safe to drop.
    pub async fn transaction(&self) -> Result<PostgresTransaction, Error> {
        let loan: &dyn Any = match self.loan() {
            Some(loan) => &**loan,
            None => return Err(of_other_store()),
        };
        match loan.downcast_ref::<PostgresLoan>() {
            Some(loan) => loan.borrow().await,
            None => Err(of_other_store()),
        }
    }
}

fn of_other_store() -> Error {
    Error::misconfigured("the layer's store is not in PostgreSQL, or of a form that hides it")
}
