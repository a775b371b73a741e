//! Channels: who is speaking, and which messages are these?

mod by_path;
pub(crate) mod contract;
mod header;
mod json;
mod json_path;
pub(crate) mod path;
mod scope;
mod shared;
mod telegram;
mod text;
mod whatsapp;
mod when;

pub use by_path::ByPath;
pub use contract::{Ack, Busy, Channel, Concern, Reason, Refusal, Reply, Terms};
pub use header::IdempotencyKey;
pub use json_path::JsonPath;
pub use path::OriginalPath;
pub use scope::Scope;
pub use telegram::Telegram;
pub use whatsapp::WhatsApp;
