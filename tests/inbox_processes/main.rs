//! Inboxes in several processes, with SIGKILL and a restarted database: what was acknowledged is
//! handled, in order, one at a time in its conversation, and once unless its process died of it.
//!
//! `INBOX_MESSAGES` makes the runs longer: 20,000 messages in 500 conversations take some minutes.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(clippy::expect_used, reason = "helpers of tests")]
#![expect(
    clippy::print_stdout,
    reason = "a process tells its parent; a test says what it did"
)]
#![expect(clippy::indexing_slicing, reason = "helpers of tests")]
#![expect(clippy::panic, reason = "helpers of tests")]
#![expect(
    clippy::disallowed_methods,
    reason = "a test owns the tasks that it spawns"
)]

mod chaos;
mod check;
mod child;
#[path = "../support/cluster.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod cluster;
mod crashes;
mod journal;
mod senders;
