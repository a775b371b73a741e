//! Proves that gRPC calls are protected in gRPC's own words: over real sockets, by tonic's server
//! and client, and by the other servers that speak HTTP/2.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(
    clippy::disallowed_methods,
    reason = "a test owns the tasks that it spawns"
)]

mod calls;
mod chat;
mod servers;
mod streaming_calls;
