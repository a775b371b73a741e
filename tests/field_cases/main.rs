//! What went wrong elsewhere, sent to this crate: by cases that users of chat webhooks, idempotency
//! layers and queues have reported in public (B), and by sequences at which other crates of this
//! kind fail (P). `tests/field_cases.md` has a line for each, with the test that shows it.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(
    clippy::excessive_nesting,
    reason = "handlers are async blocks in closures within tables of cases"
)]
#![expect(clippy::panic, reason = "helpers of tests")]
#![expect(
    clippy::disallowed_methods,
    reason = "a test owns the tasks that it spawns"
)]

mod app;
mod batches;
#[path = "../support/database.rs"]
mod database;
mod double_runs;
mod inbox;
mod load;
mod mounting;
mod outcomes;
mod page;
mod replays;
mod requests;
mod scopes;
mod senders;
mod stores;
