//! Channels: who is speaking, and which messages are these?

pub(crate) mod contract;

pub use contract::{Ack, Busy, Channel, Concern, Reason, Refusal, Reply, Terms};
