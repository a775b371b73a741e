//! What a handler writes is in force exactly if its message is done: on PostgreSQL and SQLite, in
//! line, in an inbox and through the outbox, with real faults.
//!
//! `EFFECTS_MESSAGES` makes the run of several processes longer: 5,000 take some minutes.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(clippy::expect_used, reason = "helpers of tests")]
#![expect(clippy::indexing_slicing, reason = "helpers of tests")]
#![expect(
    clippy::cognitive_complexity,
    reason = "tests that assert step by step"
)]
#![expect(clippy::panic, reason = "helpers of tests, and a handler that does")]
#![expect(
    clippy::print_stdout,
    reason = "a process tells its parent; a test says what it did"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "a test owns the tasks that it spawns"
)]

mod chaos;
mod child;
#[path = "../support/cluster.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod cluster;
mod crashes;
#[path = "../support/database.rs"]
mod database;
mod example;
mod in_line;
mod inbox;
mod lost;
mod misuse;
mod outbox;
#[path = "../support/proxy.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod proxy;
mod side;
mod tables;
#[path = "../support/turns.rs"]
mod turns;
