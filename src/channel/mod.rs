//! Channels: who is speaking, and which messages are these?

mod by_path;
pub(crate) mod contract;
mod header;
pub(crate) mod path;
mod scope;
mod shared;

pub use by_path::ByPath;
pub use contract::{Ack, Busy, Channel, Concern, Reason, Refusal, Reply, Terms};
pub use header::IdempotencyKey;
pub use path::OriginalPath;
pub use scope::Scope;
