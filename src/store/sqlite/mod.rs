//! The store in one SQLite file.
//!
//! Two threads serve all handles of a store. The **writer** owns the connection that writes: it
//! takes whatever calls wait and performs them in one transaction, so that under load many calls
//! share one flush to the disk; a call that comes alone goes at once. The **reader** looks, and
//! so never waits behind the writer. Both end with the last handle.

mod batch;
mod claim;
mod clock;
mod connection;
mod conversation;
mod fault;
mod inbox;
mod job;
mod kept;
mod lent;
pub(crate) mod loan;
mod options;
mod post;
mod reader;
mod renew;
mod schema;
mod settle;
pub(crate) mod store;
mod sweep;
mod sweeper;
mod tables;
pub(crate) mod thread;
mod writer;

pub use options::SqliteOptions;
pub use store::SqliteStore;
