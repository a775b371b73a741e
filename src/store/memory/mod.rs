//! The store in this process's memory.
//!
//! A row lies in one of 256 shards, chosen by its key's hash, each behind a mutex that is held for
//! less than a microsecond. Beside its table a shard keeps a queue of when its rows' retention
//! ends, so that rows leave a few at a time, with the claims that come.

mod inbox;
mod life;
mod line;
mod locked;
mod moment;
mod retention;
mod row;
mod shard;
pub(crate) mod store;
mod table;

pub use store::MemoryStore;
