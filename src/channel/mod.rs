//! Channels: who is speaking, and which messages are these?
//!
#![doc = include_str!("../../docs/channels.md")]

mod bird;
mod by_path;
mod chatwoot;
mod cloud_events;
pub(crate) mod contract;
mod discord_events;
mod discord_interactions;
pub(crate) mod form;
mod form_field;
mod github;
mod google_chat;
mod header;
mod header_id;
mod infobip;
mod instagram;
mod intercom;
mod json;
mod json_path;
mod line;
mod matrix;
mod messaging;
mod messenger;
mod own;
mod parking;
pub(crate) mod path;
mod scope;
mod shared;
mod single;
mod slack;
mod standard_webhooks;
mod sunshine;
mod teams;
mod telegram;
mod text;
mod twilio;
mod viber;
mod vonage;
#[cfg(feature = "xml")]
mod wechat;
mod whatsapp;
mod when;
#[cfg(feature = "xml")]
mod xml;
#[cfg(feature = "xml")]
mod xml_path;

pub use bird::Bird;
pub use by_path::ByPath;
pub use chatwoot::Chatwoot;
pub use cloud_events::CloudEvents;
pub use contract::{Ack, Busy, Channel, Concern, Reason, Refusal, Reply, Terms};
pub use discord_events::DiscordEvents;
pub use discord_interactions::DiscordInteractions;
pub use form_field::FormField;
pub use github::GitHub;
pub use google_chat::GoogleChat;
pub use header::IdempotencyKey;
pub use header_id::HeaderId;
pub use infobip::Infobip;
pub use instagram::Instagram;
pub use intercom::Intercom;
pub use json_path::JsonPath;
pub use line::Line;
pub use matrix::Matrix;
pub use messenger::Messenger;
pub use parking::Parking;
pub use path::OriginalPath;
pub use scope::Scope;
pub use slack::Slack;
pub use standard_webhooks::StandardWebhooks;
pub use sunshine::Sunshine;
pub use teams::Teams;
pub use telegram::Telegram;
pub use twilio::Twilio;
pub use viber::Viber;
pub use vonage::Vonage;
#[cfg(feature = "xml")]
pub use wechat::WeChat;
pub use whatsapp::WhatsApp;
#[cfg(feature = "xml")]
pub use xml_path::XmlPath;
