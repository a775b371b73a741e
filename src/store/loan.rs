//! A store's own transaction, lent to a run.

use std::any::Any;
use std::fmt::Debug;

use futures_util::future::BoxFuture;

use crate::error::Error;
use crate::store::lease::Settlement;
use crate::store::queue::arrival::Arrival;
use crate::store::queue::turn::{Onward, Report};

/// The transaction that one run may borrow from its store: the handler writes in it, and the end
/// of the run is its last statement. So the handler's writes are committed with the record, or not
/// at all.
///
/// Begun by the first use, through the methods of the store's own kind of loan; ended once, by
/// [`record`](Self::record), [`report`](Self::report) or [`roll_back`](Self::roll_back). Dropped
/// before that, it is rolled back.
///
/// An implementer owes, beside what each method says:
/// * **the end of the run comes behind all that the handler wrote**, by key and token, or by turn,
///   and not exactly its rows changed means that all is rolled back;
/// * **no connection goes back to its pool with a transaction open**, however the run ends;
/// * a handler that ended the transaction by itself is found out, and nothing is recorded then.
pub trait Loan: Any + Debug + Send + Sync {
    /// Whether the handler began it.
    fn is_begun(&self) -> bool;

    /// Puts effects into the store's outbox, records runs, and commits; all of it, or nothing.
    /// Every settlement is a record.
    ///
    /// # Errors
    /// If it is unknown whether the commit was applied. Whoever settles the same messages as
    /// released afterwards waits for its end, and so finds out.
    fn record<'a>(
        &'a self,
        effects: &'a [Arrival],
        settlements: &'a [Settlement],
    ) -> BoxFuture<'a, Result<Committed<()>, Error>>;

    /// Puts effects into the store's outbox, reports the end of an inbox's message, and commits;
    /// all of it, or nothing.
    ///
    /// # Errors
    /// If it is unknown whether the commit was applied. A report that the same message is to be
    /// handled again finds no such message if it was.
    fn report<'a>(
        &'a self,
        effects: &'a [Arrival],
        report: &'a Report,
    ) -> BoxFuture<'a, Result<Committed<Onward>, Error>>;

    /// Undoes what the handler wrote. Nothing is begun afterwards.
    fn roll_back(&self) -> BoxFuture<'_, ()>;
}

/// What became of a transaction that was to be committed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Committed<T> {
    /// It is in force.
    Applied(T),
    /// Another run took over, or the row is gone: all was rolled back.
    Superseded,
    /// All was rolled back, for this reason.
    RolledBack(Error),
}
