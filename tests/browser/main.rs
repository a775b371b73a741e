//! Proves the page of the example `chat`, and with it `web/idempotent-send.js`, in a real Chromium:
//! whatever happens between a click on Send and its answer, the server has the message once.
//!
//! It needs `chromium` and `chromedriver` (Debian: `apt-get install chromium chromium-driver`).
//! Where they are not there the tests say so and end; with `BROWSER=required` they fail.
//!
//! The server is the built example: `cargo test` builds examples with the tests; a single
//! `cargo test --test browser` needs `cargo build --example chat` before it.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how these helpers of a test fail"
)]

mod chat;
mod chromium;
mod faults;
#[path = "../chat/http.rs"]
#[expect(dead_code, reason = "the tests of the server need more of it")]
mod http;
mod looks;
#[path = "../support/lossy.rs"]
mod lossy;
mod outbox;
#[path = "../chat/server.rs"]
#[expect(dead_code, reason = "the tests of the server need more of it")]
mod server;
