//! The store in PostgreSQL.

mod claim;
mod conversation;
mod database;
mod fault;
mod held;
mod id;
mod inbox;
mod lanes;
mod look;
mod migrate;
mod options;
mod pace;
mod renew;
mod settle;
mod stand;
pub(crate) mod store;
mod sweeper;
mod table;
mod text;
mod time;

pub use options::{PostgresOptions, Prepared};
pub use store::PostgresStore;
