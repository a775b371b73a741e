//! Proves that the SQL in `docs/operations.md` runs on the tables as they are, and does what the
//! page says.

#![expect(
    unused_must_use,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    clippy::string_slice,
    clippy::panic,
    reason = "helpers of tests"
)]

#[path = "../support/database.rs"]
mod database;
mod page;
mod postgres;
mod sample;
mod sqlite;
#[path = "../support/turns.rs"]
mod turns;
