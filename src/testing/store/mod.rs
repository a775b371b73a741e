//! What every [`Store`](crate::store::Store) owes, one test per clause.
//!
//! [`store_contract!`](crate::store_contract) makes a test of each clause from one line. A clause
//! is also an `async fn` that can be called by itself; it takes a store that holds nothing yet,
//! and panics if the store breaks it.
//!
//! The suite runs on real time, since a store's clock may be another machine's. It waits by asking
//! again, with leases of some 50 ms and half a minute of patience; a machine that is slow makes it
//! slow, not wrong. A clause that can be spoilt by a pause of its own process notices the pause,
//! and begins again.
//!
//! # Example
//! ```
//! # mod tests {
//! # use tower_idempotency::store::MemoryStore;
//! tower_idempotency::store_contract!(async || MemoryStore::new());
//! # }
//! ```

pub mod batches;
pub mod cancelling;
pub mod claims;
pub mod durable;
pub mod ending;
pub(crate) mod fixture;
pub mod forgetting;
mod hand;
pub mod leases;
pub mod looks;
pub mod names;
pub mod races;
pub mod records;
pub mod retention;
mod suite;
pub mod unknown;

pub use fixture::Fixture;
