//! `PostgresStore` keeps the store contract, and keeps it through faults, on a real server.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking"
)]

mod contract;
#[path = "../support/database.rs"]
mod database;
mod fixture;
