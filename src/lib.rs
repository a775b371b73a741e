//! Runs every chat message once.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod body;
mod canonical;
pub mod channel;
mod claimed;
mod coding;
mod counts;
mod delivery;
mod detach;
mod error;
mod fingerprint;
mod flow;
mod key;
mod layer;
mod pace;
mod path;
mod policy;
mod problem;
mod record;
mod reply;
mod service;
pub mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod underway;
pub mod verify;

pub use body::{RequestBody, ResponseBody};
pub use claimed::{Claimed, Message};
pub use counts::Counts;
pub use delivery::Delivery;
pub use error::{BoxError, Error};
pub use fingerprint::{BodyForm, Fingerprint, Part};
pub use key::{Conversation, Key};
pub use layer::IdempotencyLayer;
pub use policy::{Disposition, OnStoreFailure, OnStreamingCall, OnUnconfirmed, Others};
pub use record::{Keep, Payload, Record, Whole};
pub use service::{Idempotency, ResponseFuture};
