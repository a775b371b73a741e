//! What every [`Queue`](crate::store::Queue) owes, one test per clause.
//!
//! [`queue_contract!`](crate::queue_contract) makes a test of each clause from one line, as
//! [`store_contract!`](crate::store_contract) does for the rest of a store; what is said
//! [there](crate::testing::store) about time and fixtures holds here as well.
//!
//! # Example
//! ```
//! # mod tests {
//! # use tower_idempotency::store::MemoryStore;
//! tower_idempotency::queue_contract!(async || MemoryStore::new());
//! # }
//! ```

pub mod accepting;
pub mod durable;
pub mod dying;
pub mod ending;
mod hand;
pub mod keeping;
mod suite;
pub mod turns;
