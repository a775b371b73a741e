//! Proves that a layer that only looks changes nothing: whatever it finds, the handler gets the
//! request and the caller the answer as they are without it; and that it counts what it would
//! have done.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod alike;
mod bare;
mod counting;
#[path = "../watch/store.rs"]
mod store;
