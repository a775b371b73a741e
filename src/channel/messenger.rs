//! Facebook Messenger.

use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;

use crate::channel::contract::{Ack, Refusal, Terms};
use crate::channel::json::found::Found;
use crate::channel::json::reader::{Base, Reader, by_reader};
use crate::channel::json::tree::Node;
use crate::channel::messaging;
use crate::record::Keep;
use crate::verify::contract::Verify;
use crate::verify::verified::Verified;

/// Messenger's webhooks: many events of many pages in a request, which a repeat may group in another
/// way.
///
/// Echoes, edits and reactions carry the id of another message, so their keys say what happened
/// to it. Postbacks and referrals are known by who sent them and when. Receipts (`delivery`,
/// `read`) have no id of their own and pass.
///
/// | | |
/// | --- | --- |
/// | key | `message.mid`; an echo `echo`, `mid`; an edit `edit`, `mid`, `num_edit`; a reaction `reaction`, `mid`, the sender, `action`, `timestamp`; postbacks, referrals, opt-ins and handovers their kind, the sender, `timestamp`; under `standby` the same behind `standby` |
/// | scope | the page: `entry.id` |
/// | conversation | the person |
/// | time | `timestamp` |
/// | waits | up to 3 s of the 5 s that Meta is said to wait |
/// | repeats | for an hour; then the app is unsubscribed from the page |
/// | keeps | two days |
/// | ack | 200, `EVENT_RECEIVED` |
///
/// <https://developers.facebook.com/docs/messenger-platform/webhooks>
///
/// ```
/// # #[cfg(feature = "verify")] {
/// use tower_idempotency::channel::Messenger;
/// use tower_idempotency::verify::MetaSignature;
///
/// let messenger = Messenger::verified_by(MetaSignature::new("app secret"));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Messenger(Base);

impl Messenger {
    /// Checks each request by `verifier`, such as
    /// [`MetaSignature`](crate::verify::MetaSignature), before it is read.
    pub fn verified_by<V: Verify>(verifier: V) -> Verified<Self, V> {
        Verified::new(Self::unverified(), verifier)
    }

    /// Believes every request: for one that was verified in front of the layer.
    pub fn unverified() -> Self {
        let terms = Terms {
            wait: Duration::from_secs(3),
            keep: Keep::For(Duration::from_hours(48)),
            horizon: Some(Duration::from_hours(1)),
            ack: Ack {
                body: Bytes::from_static(b"EVENT_RECEIVED"),
                ..Ack::default()
            },
            ..Terms::webhook("messenger")
        };
        Self(Base::new(terms, &messaging::reads()))
    }
}

impl Reader for Messenger {
    fn base(&self) -> &Base {
        &self.0
    }

    fn find(&self, _head: &Parts, root: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
        messaging::find(root, found)
    }
}

by_reader!(Messenger);
