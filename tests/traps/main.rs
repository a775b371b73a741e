//! Proves that set-ups which cannot work, or may not, say so themselves: an error where it is
//! certain, one warning where it is not. An inbox's are in `tests/inbox/building.rs`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "helpers of tests"
)]

mod inbox;
#[path = "../support/log.rs"]
mod log;
mod nested;
mod options;
#[cfg(all(feature = "postgres", feature = "sqlite"))]
mod sweeper;

/// How many lines of the log say this.
fn said(what: &str) -> usize {
    let log = log::Log::text();
    log.lines().filter(|line| line.contains(what)).count()
}
