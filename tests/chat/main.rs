//! The example's chat server keeps what the README says of it: seen from outside, over sockets,
//! with the server as a process of its own that is killed where that is the point.
//!
//! The server is the built example: `cargo test` builds examples with the tests; a single
//! `cargo test --test chat` needs `cargo build --example chat` before it.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "a panic is how these helpers of a test fail"
)]

mod bad_input;
mod drain;
mod http;
mod kill;
mod log;
#[cfg(feature = "metrics")]
mod metrics;
mod replay;
mod server;
mod shop;
mod whatsapp;
