//! The inbox in one process: what is acknowledged is handled, in order, until it is done or dead.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(clippy::indexing_slicing, reason = "helpers of tests")]
#![expect(clippy::panic, reason = "helpers of tests")]
#![expect(
    clippy::disallowed_methods,
    reason = "a test owns the tasks that it spawns"
)]

#[cfg(feature = "admin")]
mod admin;
mod building;
mod dying;
mod ending;
mod order;
mod receiving;
mod retrying;
mod world;
