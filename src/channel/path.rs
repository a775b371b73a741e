//! The path that the client asked for.

use http::Uri;
use http::request::Parts;

#[cfg(feature = "axum")]
use crate::path::with_axum::original_path;
#[cfg(not(feature = "axum"))]
use crate::path::without_axum::original_path;

/// A request extension: the URI as the client sent it, where a router in front of the layer has
/// cut its path.
///
/// `axum::Router::nest` strips the prefix of what it nests, so a layer inside sees
/// `/5/messages` where the client asked for `/chat/5/messages`. Channels that read the path
/// ([`ByPath`](crate::channel::ByPath), [`Scope::path_segment`](crate::channel::Scope)) and the
/// comparison of repeats look here first and take the request's own URI otherwise. Mount the layer
/// outside of any `nest`, or turn on the feature `axum`, by which axum's own `OriginalUri` is
/// found, and nothing is needed. For another router, put something like this in front of it:
///
/// ```
/// use axum::extract::{OriginalUri, Request};
/// use tower_idempotency::channel::OriginalPath;
///
/// async fn keep_the_path(OriginalUri(uri): OriginalUri, mut request: Request) -> Request {
///     request.extensions_mut().insert(OriginalPath::new(uri));
///     request
/// }
///
/// let nested: axum::Router = axum::Router::new()
///     // .layer(IdempotencyLayer::new(store, channel))
///     .layer(axum::middleware::map_request(keep_the_path));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginalPath(Uri);

impl OriginalPath {
    /// The URI as the client sent it. A clone of a `Uri` copies no text.
    pub fn new(uri: Uri) -> Self {
        Self(uri)
    }

    /// Its path.
    pub fn path(&self) -> &str {
        self.0.path()
    }
}

/// The path that the client asked for: that of [`OriginalPath`] if there is one, else the router's
/// word, else the URI's.
pub(crate) fn path_of(head: &Parts) -> &str {
    match head.extensions.get::<OriginalPath>() {
        Some(original) => original.path(),
        None => original_path(head),
    }
}

/// The `n`th segment of the path, counted from 0, as it stands there.
pub(crate) fn segment(path: &str, n: usize) -> Option<&str> {
    path.strip_prefix('/')?.split('/').nth(n)
}

#[cfg(test)]
mod tests {
    use super::segment;

    #[test]
    fn segments_count_from_zero_and_may_be_empty() {
        let path = "/chat//5/";
        assert_eq!(segment(path, 0), Some("chat"));
        assert_eq!(segment(path, 1), Some(""));
        assert_eq!(segment(path, 2), Some("5"));
        assert_eq!(segment(path, 3), Some(""));
        assert_eq!(segment(path, 4), None);
        assert_eq!(segment("*", 0), None);
    }
}
