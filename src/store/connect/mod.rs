//! The kind of a store, chosen by a URL.
//!
//! Each scheme has a module; where its feature is off, one that says which feature to turn on.

mod memory;
#[cfg(not(feature = "postgres"))]
mod no_postgres;
#[cfg(not(feature = "sqlite"))]
mod no_sqlite;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
mod url;

pub use url::connect;
