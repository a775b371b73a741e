//! The path before axum's `nest` cut off its prefix.

use axum::extract::OriginalUri;
use http::request::Parts;

/// The path that the client sent: a router nested twice must not make two paths one.
pub(crate) fn original_path(head: &Parts) -> &str {
    match head.extensions.get::<OriginalUri>() {
        Some(OriginalUri(uri)) => uri.path(),
        None => head.uri.path(),
    }
}
