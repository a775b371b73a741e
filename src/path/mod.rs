//! The path as the client sent it, also where a router has cut off a prefix.

#[cfg(feature = "axum")]
mod axum_uri;
#[cfg(not(feature = "axum"))]
mod plain;

#[cfg(feature = "axum")]
pub(crate) use axum_uri::original_path;
#[cfg(not(feature = "axum"))]
pub(crate) use plain::original_path;
