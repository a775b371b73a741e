//! The messages that come.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tower_idempotency::store::Arrival;
use tower_idempotency::{Conversation, Keep, Key};

/// How many conversations there are, where nothing else is said.
pub(crate) const CONVERSATIONS: u64 = 5000;

/// A new message of 1 KiB in one of so many conversations.
pub(crate) fn fresh(conversations: u64) -> Arrival {
    of(&format!("44790{}", rand::random_range(0..conversations)))
}

/// A new message of 1 KiB in this conversation.
pub(crate) fn of(conversation: &str) -> Arrival {
    let key = Key::new("whatsapp", "1065", &[id()]);
    let conversation = Conversation::new("whatsapp", "1065", conversation);
    Arrival::new(key, Keep::CONVERSATION, raw()).conversation(conversation)
}

/// A new id, as WhatsApp's: a common beginning, then what differs.
pub(crate) fn id() -> String {
    format!("wamid.HBgM{:019}", rand::random::<u64>() >> 1)
}

/// 1 KiB that cannot be compressed, with the moment at its beginning.
pub(crate) fn raw() -> Bytes {
    let mut raw = vec![0; 1024];
    rand::fill(&mut raw[16..]);
    raw[..16].copy_from_slice(&since_epoch().to_be_bytes());
    raw.into()
}

/// How long ago the request was made.
pub(crate) fn age(raw: &[u8]) -> Duration {
    let began = u128::from_be_bytes(raw[..16].try_into().unwrap());
    let nanos = since_epoch().saturating_sub(began);
    Duration::from_nanos(u64::try_from(nanos).unwrap())
}

#[expect(clippy::disallowed_methods, reason = "read by other processes")]
fn since_epoch() -> u128 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.unwrap().as_nanos()
}
