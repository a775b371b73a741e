//! Channels: who is speaking, and which messages are these?

mod by_path;
pub(crate) mod contract;
pub(crate) mod form;
mod form_field;
mod github;
mod header;
mod header_id;
mod json;
mod json_path;
mod matrix;
pub(crate) mod path;
mod scope;
mod shared;
mod single;
mod slack;
mod standard_webhooks;
mod telegram;
mod text;
mod twilio;
#[cfg(feature = "xml")]
mod wechat;
mod whatsapp;
mod when;
#[cfg(feature = "xml")]
mod xml;
#[cfg(feature = "xml")]
mod xml_path;

pub use by_path::ByPath;
pub use contract::{Ack, Busy, Channel, Concern, Reason, Refusal, Reply, Terms};
pub use form_field::FormField;
pub use github::GitHub;
pub use header::IdempotencyKey;
pub use header_id::HeaderId;
pub use json_path::JsonPath;
pub use matrix::Matrix;
pub use path::OriginalPath;
pub use scope::Scope;
pub use slack::Slack;
pub use standard_webhooks::StandardWebhooks;
pub use telegram::Telegram;
pub use twilio::Twilio;
#[cfg(feature = "xml")]
pub use wechat::WeChat;
pub use whatsapp::WhatsApp;
#[cfg(feature = "xml")]
pub use xml_path::XmlPath;
