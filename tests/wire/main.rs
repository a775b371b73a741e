//! Proves what the layer does on the wire: one table of cases before axum, hyper (HTTP/1 and
//! HTTP/2) and tonic, and connections that do what they should not, with raw sockets, h2 and curl
//! as the peers.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "helpers of tests"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "a test owns the tasks that it spawns"
)]

mod app;
mod broken;
mod early;
mod failures;
mod half_closed;
mod peer;
mod rows;
mod server;
mod table;
#[cfg(feature = "sqlite")]
mod unconfirmed;
mod upgrade;
