//! The store in PostgreSQL.

mod claim;
mod conversation;
mod database;
mod fault;
mod held;
mod id;
mod inbox;
mod lanes;
pub(crate) mod lent;
pub(crate) mod loan;
mod look;
mod migrate;
mod options;
mod outbox;
mod pace;
mod pool;
mod renew;
mod settle;
mod stand;
pub(crate) mod store;
mod sweeper;
mod table;
mod text;
mod time;

pub use lent::PostgresTransaction;
pub use options::{PostgresOptions, Prepared};
pub use store::PostgresStore;
