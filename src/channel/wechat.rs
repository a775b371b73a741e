//! WeChat official accounts.

use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, StatusCode};

use crate::channel::contract::{Ack, Channel, Concern, Reason, Refusal, Reply, Terms};
use crate::channel::json::reader::concern;
use crate::channel::single::Single;
use crate::channel::text::present;
use crate::channel::when::seconds;
use crate::channel::xml::{self, Fault};
use crate::delivery::Delivery;
use crate::record::Keep;
use crate::verify::contract::Verify;
use crate::verify::verified::Verified;

/// The webhooks of a WeChat official account in plain mode: one message or event in XML.
///
/// Messages have an id. Events have none; WeChat advises the sender and the second, and the event's
/// name is added here, since a user who subscribes and shares where he is makes two in one second.
/// `MsgID` in an event is another message's id and never a key.
///
/// In secure mode the id is inside of the ciphertext, so that the request passes: put the layer
/// behind the decryption.
///
/// | | |
/// | --- | --- |
/// | key | `MsgId`; `event`, `FromUserName`, `CreateTime`, `Event` |
/// | scope | `ToUserName` |
/// | conversation | `FromUserName` |
/// | time | `CreateTime` |
/// | handshake | GET with `echostr` |
/// | waits | up to 4 s of the 5 s that WeChat waits |
/// | repeats | twice, about 15 s in all |
/// | keeps | an hour |
/// | reply | the answer is the reply to the user, and a repeat gets it |
/// | ack | 200, `success`; for anything unknown, JSON included, WeChat shows the user an error |
///
/// <https://developers.weixin.qq.com/doc/offiaccount/Message_Management/Receiving_standard_messages.html>
///
/// ```
/// # #[cfg(feature = "verify")] {
/// use tower_idempotency::channel::WeChat;
/// use tower_idempotency::verify::WeChatSignature;
///
/// let wechat = WeChat::verified_by(WeChatSignature::new("token"));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct WeChat {
    terms: Terms,
}

impl WeChat {
    /// Checks each request by `verifier`, such as
    /// [`WeChatSignature`](crate::verify::WeChatSignature), before it is read.
    pub fn verified_by<V: Verify>(verifier: V) -> Verified<Self, V> {
        Verified::new(Self::unverified(), verifier)
    }

    /// Believes every request: for one that was verified in front of the layer.
    pub fn unverified() -> Self {
        Self {
            terms: Terms {
                wait: Duration::from_secs(4),
                keep: Keep::For(Duration::from_hours(1)),
                horizon: Some(Duration::from_secs(20)),
                reply: Reply::Record,
                ack: Ack {
                    status: StatusCode::OK,
                    content_type: Some(HeaderValue::from_static("text/plain")),
                    body: Bytes::from_static(b"success"),
                },
                ..Terms::webhook("wechat")
            },
        }
    }
}

const PATHS: [&str; 6] = [
    "/xml/ToUserName",
    "/xml/FromUserName",
    "/xml/CreateTime",
    "/xml/MsgType",
    "/xml/MsgId",
    "/xml/Event",
];

impl Channel for WeChat {
    fn terms(&self, _head: &Parts) -> &Terms {
        &self.terms
    }

    fn concern(&self, head: &Parts) -> Result<Concern, Refusal> {
        Ok(concern(head))
    }

    fn deliveries(&self, _head: &Parts, body: &[u8]) -> Result<Vec<Delivery>, Refusal> {
        let texts = match xml::texts(body, &PATHS) {
            Ok(texts) => texts,
            Err(Fault::NotXml) => return Ok(Vec::new()),
            Err(fault) => return Err(fault.into()),
        };
        let mut texts = texts.iter().map(|text| present(text.as_deref()));
        let mut next = || texts.next().flatten();
        let (to, from, time, kind) = (next(), next(), next(), next());
        let (message, event) = (next(), next());
        let id = match (kind, message) {
            (Some("event"), _) => (|| Some(vec!["event", from?, time?, event?]))(),
            (_, message) => message.map(|id| vec![id]),
        };
        let Some(id) = id else {
            return Ok(Vec::new());
        };
        let missing = || Refusal::new(Reason::MissingScope, "the body has no `ToUserName`");
        let single = Single {
            scope: to.ok_or_else(missing)?,
            id: &id,
            conversation: from,
            sent_at: time.and_then(seconds),
        };
        single.delivery(&self.terms.channel)
    }
}
