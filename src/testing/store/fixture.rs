//! A store under test, and what must outlive it.

use crate::store::contract::Store;

/// A store under test: the store alone, or a pair of it and whatever must outlive it, such as a
/// folder that is removed when it is dropped.
pub trait Fixture: Send + Sync + 'static {
    /// The store.
    type Store: Store;

    /// The store.
    fn store(&self) -> &Self::Store;
}

impl<S: Store> Fixture for S {
    type Store = S;

    fn store(&self) -> &S {
        self
    }
}

impl<S: Store, Held: Send + Sync + 'static> Fixture for (S, Held) {
    type Store = S;

    fn store(&self) -> &S {
        &self.0
    }
}
