//! Stores: run it, replay it, it is running, it is something else.

mod boxed;
mod connect;
pub(crate) mod contract;
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use boxed::BoxStore;
pub use connect::connect;
pub use contract::{
    Claim, End, Hold, Lease, Nonce, Settled, Settlement, Sight, Standing, Store, Token, Verdict,
    Wanted,
};
pub use memory::MemoryStore;
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOptions, PostgresStore, Prepared};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore};
