//! Proves that a client with the layer and the policy sends each message once, whatever becomes of
//! its answers, and that without them it does not.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::future_not_send,
    reason = "a panic is how these helpers of a test fail"
)]

mod answers;
#[expect(dead_code, reason = "the page's tests need more of it")]
#[path = "../support/lossy.rs"]
mod lossy;
mod lost;
mod policy;
mod server;
