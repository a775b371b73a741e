//! `PostgresStore` keeps the store contract, and keeps it through faults, on a real server.

#![expect(
    unused_must_use,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking"
)]

mod child;
mod clock;
#[path = "../support/cluster.rs"]
#[expect(dead_code, reason = "benches use the rest")]
mod cluster;
mod contract;
mod crowds;
#[path = "../support/database.rs"]
mod database;
mod deadlocks;
mod fixture;
mod given_up;
mod gone;
mod hand;
mod inbox;
mod inbox_churn;
mod layer;
mod lost;
mod migrating;
mod plans;
mod pooler;
#[path = "../support/proxy.rs"]
mod proxy;
mod server;
mod sweeping;
mod two_processes;
mod unknown;
