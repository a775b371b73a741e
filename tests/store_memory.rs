//! The memory store keeps the store contract, clause by clause.

use tower_idempotency::store::MemoryStore;

tower_idempotency::store_contract!(async || MemoryStore::new());
