//! Without the feature `metrics`, a watched store is the store.

/// The store itself.
pub(crate) type Watched<S> = S;

/// The store itself.
pub(crate) fn watched<S>(store: S) -> Watched<S> {
    store
}
