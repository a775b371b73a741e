//! Stores: run it, replay it, it is running, it is something else.

mod boxed;
mod connect;
pub(crate) mod contract;
pub(crate) mod lease;
pub(crate) mod loan;
mod memory;
#[cfg(feature = "metrics")]
mod metered;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
pub(crate) mod queue;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;
pub(crate) mod unknown;
#[cfg(not(feature = "metrics"))]
mod unmetered;
pub(crate) mod watched;

pub use boxed::BoxStore;
pub use connect::connect;
pub use contract::{Claim, Nonce, Sight, Store, Verdict, Wanted};
/// The library whose connection a run borrows; it leads to `tokio_postgres`.
#[cfg(feature = "postgres")]
#[doc(no_inline)]
pub use deadpool_postgres;
pub use lease::{End, Hold, Lease, Settled, Settlement, Standing, Token};
pub use loan::{Committed, Loan};
pub use memory::MemoryStore;
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOptions, PostgresStore, PostgresTransaction, Prepared};
pub use queue::{
    Accepted, Arrival, Backlog, Behind, DeadLetter, Death, Ended, Line, Onward, Place, Queue,
    Report, Stage, Then, Turn, TurnHold, Waiting,
};
/// The library whose connection a run borrows.
#[cfg(feature = "sqlite")]
#[doc(no_inline)]
pub use rusqlite;
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore};
pub use unknown::{Resolved, settle_unknown};
