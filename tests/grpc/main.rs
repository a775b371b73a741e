//! Proves that gRPC calls are protected in gRPC's own words: over real sockets, by tonic's server
//! and client.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(
    clippy::disallowed_methods,
    reason = "a test owns the tasks that it spawns"
)]

mod calls;
mod chat;
mod streaming_calls;
