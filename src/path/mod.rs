//! The path as the client sent it, also where a router has cut off a prefix.

#[cfg(feature = "axum")]
pub(crate) mod with_axum;
#[cfg(not(feature = "axum"))]
pub(crate) mod without_axum;
