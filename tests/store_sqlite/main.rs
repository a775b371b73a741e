//! What is special about the store in one SQLite file: calls that wait share a transaction, a
//! call's failure is its own and a transaction's failure is everybody's; what was answered is on
//! the disk when the process is killed; several processes share the file; broken files are told
//! apart; the file does not grow for ever.
#![cfg(feature = "sqlite")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how the helpers of a test fail"
)]
#![expect(clippy::disallowed_methods, reason = "the tests are the callers")]

mod calls;
mod child;
#[cfg(feature = "testing")]
mod contract;
mod files;
mod growth;
mod life;
mod processes;
mod support;
