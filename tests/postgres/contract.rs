//! Every clause of the store contract.

use crate::fixture::{fresh, reopen};

tower_idempotency::store_contract!(fresh, reopen);
