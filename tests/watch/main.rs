//! Proves what an operator sees: each metric is emitted by a real run, spans tell what happened and
//! no id, and `docs/operations.md` lists the names as they are.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "helpers of tests"
)]

mod app;
mod docs;
mod inbox;
mod layer;
#[path = "../support/log.rs"]
mod log;
mod seen;
mod spans;
mod store;
