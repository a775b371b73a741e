//! Without a router's help, the path is the request's own.

use http::request::Parts;

/// The path of the request.
pub(crate) fn original_path(head: &Parts) -> &str {
    head.uri.path()
}
