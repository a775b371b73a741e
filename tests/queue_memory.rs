//! The memory store keeps the inbox contract, clause by clause.

use tower_idempotency::store::MemoryStore;

tower_idempotency::queue_contract!(async || MemoryStore::new());
