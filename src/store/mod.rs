//! Stores: run it, replay it, it is running, it is something else.

mod boxed;
mod connect;
pub(crate) mod contract;
mod memory;
#[cfg(feature = "metrics")]
mod metered;
#[cfg(feature = "postgres")]
mod postgres;
pub(crate) mod queue;
#[cfg(feature = "sqlite")]
mod sqlite;
pub(crate) mod unknown;
#[cfg(not(feature = "metrics"))]
mod unmetered;
pub(crate) mod watched;

pub use boxed::BoxStore;
pub use connect::connect;
pub use contract::{
    Claim, End, Hold, Lease, Nonce, Settled, Settlement, Sight, Standing, Store, Token, Verdict,
    Wanted,
};
pub use memory::MemoryStore;
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOptions, PostgresStore, Prepared};
pub use queue::{
    Accepted, Arrival, Backlog, Behind, DeadLetter, Death, Ended, Line, Onward, Place, Queue,
    Report, Stage, Then, Turn, TurnHold, Waiting,
};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore};
pub use unknown::{Resolved, settle_unknown};
