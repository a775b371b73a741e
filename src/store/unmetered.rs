//! Without the feature `metrics`, a watched store is the store.

use crate::error::Error;

/// The store itself.
pub(crate) type Watched<S> = S;

/// The store itself.
pub(crate) fn watched<S>(store: S) -> Watched<S> {
    store
}

/// The call itself.
pub(crate) async fn timed<T>(
    _operation: &'static str,
    call: impl Future<Output = Result<T, Error>> + Send,
) -> Result<T, Error> {
    call.await
}
