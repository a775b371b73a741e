//! Every clause of the store contract, and of the inbox contract.

mod store {
    use crate::fixture::{fresh, reopen};

    tower_idempotency::store_contract!(fresh, reopen);
}

mod inbox {
    use crate::fixture::{fresh, reopen};

    tower_idempotency::queue_contract!(fresh, reopen);
}
