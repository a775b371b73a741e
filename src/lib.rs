//! Runs every chat message once.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod canonical;
pub mod channel;
mod delivery;
mod error;
mod fingerprint;
mod key;
mod record;
pub mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod verify;

pub use delivery::Delivery;
pub use error::{BoxError, Error};
pub use fingerprint::{BodyForm, Fingerprint, Part};
pub use key::{Conversation, Key};
pub use record::{Keep, Payload, Record, Whole};
