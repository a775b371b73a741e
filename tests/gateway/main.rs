//! Proves the gateway before an endpoint in another language: over sockets, as child processes.
//!
//! The gateway is the built example: `cargo test` builds examples with the tests; a single
//! `cargo test --test gateway` needs `cargo build --example gateway` before it. The endpoint is a
//! script of Python's `http.server`.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

mod end;
mod faults;
mod fixtures;
mod gateway;
mod heads;
mod passing;
mod upstream;
mod webhooks;
