//! The raw request, as a store keeps it.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderName};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Uri, Version};
use serde::{Deserialize, Serialize};

use crate::body::read::length;
use crate::delivery::Delivery;
use crate::error::Error;
use crate::key::{Conversation, Key};
use crate::record::{Fields, fields_of, header_map};

/// One message with the request that brought it.
#[derive(Debug)]
pub(crate) struct RawRequest {
    pub(crate) delivery: Delivery,
    pub(crate) is_verified: bool,
    pub(crate) head: Parts,
    pub(crate) body: Bytes,
}

impl RawRequest {
    /// The request as bytes: a version byte, then postcard. Its extensions and the header fields
    /// in `left_out` are not kept.
    pub(crate) fn write(
        delivery: &Delivery,
        is_verified: bool,
        (head, body): (&Parts, &Bytes),
        left_out: &[HeaderName],
    ) -> Result<Bytes, Error> {
        let uri = head.uri.to_string();
        let mut headers = fields_of(&head.headers);
        headers.retain(|(name, _)| !left_out.iter().any(|out| out == name));
        let wire = Wire {
            key: texts_of(delivery.key()),
            conversation: delivery.in_conversation().map(texts_of_conversation),
            sent_at: delivery.when_sent().and_then(since_epoch),
            is_verified,
            method: head.method.as_str(),
            uri: &uri,
            version: number_of(head.version),
            headers,
            body,
        };
        let room = Vec::with_capacity(body.len() + 512);
        let mut bytes = room;
        bytes.push(VERSION);
        postcard::to_extend(&wire, bytes)
            .map(Bytes::from)
            .map_err(|e| Error::corrupt("a raw request could not be written").because(e))
    }

    /// Reads what [`write`](Self::write) gave. The body is a part of `bytes`, and not copied.
    pub(crate) fn read(bytes: &Bytes) -> Result<Self, Error> {
        let Some((&VERSION, rest)) = bytes.split_first() else {
            return Err(Error::corrupt("a raw request has an unknown version"));
        };
        let wire: Wire<'_> = postcard::from_bytes(rest)
            .map_err(|e| Error::corrupt("a raw request is damaged").because(e))?;
        wire.request(bytes)
            .ok_or_else(|| Error::corrupt("a raw request holds an impossible head"))
    }
}

/// The channel of a raw request; empty if it cannot be read. Costs no more than that.
pub(crate) fn channel_of(bytes: &Bytes) -> &str {
    let rest = bytes.get(1..).unwrap_or_default();
    let key = postcard::take_from_bytes::<Texts<'_>>(rest);
    key.map_or("", |((channel, _, _), _)| channel)
}

const VERSION: u8 = 1;

type Texts<'a> = (&'a str, &'a str, &'a str);

/// The stored form. Its field order is the format: new fields need a new version.
#[derive(Serialize, Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    key: Texts<'a>,
    conversation: Option<Texts<'a>>,
    sent_at: Option<Duration>,
    is_verified: bool,
    method: &'a str,
    uri: &'a str,
    version: u8,
    headers: Fields<'a>,
    body: &'a [u8],
}

impl Wire<'_> {
    fn request(self, bytes: &Bytes) -> Option<RawRequest> {
        let mut request = Request::new(());
        *request.method_mut() = Method::from_bytes(self.method.as_bytes()).ok()?;
        *request.uri_mut() = self.uri.parse::<Uri>().ok()?;
        *request.version_mut() = version_of(self.version);
        *request.headers_mut() = header_map(self.headers)?;
        let mut head = request.into_parts().0;
        let body = bytes.slice_ref(self.body);
        if head.headers.contains_key(CONTENT_LENGTH) {
            let length = HeaderValue::from(length(&body));
            head.headers.insert(CONTENT_LENGTH, length);
        }
        let (channel, scope, id) = self.key;
        let mut delivery = Delivery::new(Key::restored(channel, scope, id));
        if let Some((channel, scope, id)) = self.conversation {
            delivery = delivery.conversation(Conversation::restored(channel, scope, id));
        }
        if let Some(at) = self
            .sent_at
            .and_then(|at| SystemTime::UNIX_EPOCH.checked_add(at))
        {
            delivery = delivery.sent_at(at);
        }
        Some(RawRequest {
            delivery,
            is_verified: self.is_verified,
            head,
            body,
        })
    }
}

fn texts_of(key: &Key) -> Texts<'_> {
    (key.channel(), key.scope(), key.id())
}

fn texts_of_conversation(conversation: &Conversation) -> Texts<'_> {
    (
        conversation.channel(),
        conversation.scope(),
        conversation.id(),
    )
}

/// `None` for a sender's clock that runs before 1970.
fn since_epoch(at: SystemTime) -> Option<Duration> {
    at.duration_since(SystemTime::UNIX_EPOCH).ok()
}

fn number_of(version: Version) -> u8 {
    match version {
        Version::HTTP_09 => 9,
        Version::HTTP_10 => 10,
        Version::HTTP_2 => 20,
        Version::HTTP_3 => 30,
        _ => 11,
    }
}

fn version_of(number: u8) -> Version {
    match number {
        9 => Version::HTTP_09,
        10 => Version::HTTP_10,
        20 => Version::HTTP_2,
        30 => Version::HTTP_3,
        _ => Version::HTTP_11,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery() -> Delivery {
        Delivery::new(Key::new("c", "s", &["a|b", "c\\"]))
            .conversation(Conversation::new("c", "s", "x|y"))
            .sent_at(SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123))
    }

    fn head() -> Parts {
        let request = Request::post("/hook/a%20b?x=1&y=%C3%A9")
            .version(Version::HTTP_2)
            .header("x-a", "1")
            .header("x-b", HeaderValue::from_bytes(b"caf\xe9").unwrap())
            .header("x-a", "2")
            .header("authorization", "secret")
            .header("content-length", "999");
        request.body(()).unwrap().into_parts().0
    }

    /// Field case B121.
    #[test]
    fn a_request_comes_back_as_it_was() {
        let body = Bytes::from_static(b"\0\xff{}");
        let bytes = RawRequest::write(&delivery(), true, (&head(), &body), &[]).unwrap();
        let raw = RawRequest::read(&bytes).unwrap();
        assert_eq!(raw.delivery, delivery());
        assert!(raw.is_verified);
        assert_eq!(raw.body, body);
        let (before, after) = (head(), raw.head);
        assert_eq!(after.method, before.method);
        assert_eq!(after.uri, before.uri);
        assert_eq!(after.version, before.version);
        let lines: Vec<_> = after.headers.get_all("x-a").iter().collect();
        assert_eq!(lines, ["1", "2"]);
        assert_eq!(after.headers["x-b"].as_bytes(), b"caf\xe9");
        assert_eq!(after.headers["authorization"], "secret");
        assert_eq!(after.headers["content-length"], "4");
    }

    #[test]
    fn fields_can_be_left_out() {
        let out = [HeaderName::from_static("authorization")];
        let bytes = RawRequest::write(&delivery(), false, (&head(), &Bytes::new()), &out).unwrap();
        let raw = RawRequest::read(&bytes).unwrap();
        assert!(!raw.head.headers.contains_key("authorization"));
        assert!(!raw.is_verified);
    }

    #[test]
    fn damaged_or_later_bytes_are_an_error() {
        let body = Bytes::from_static(b"body");
        let bytes = RawRequest::write(&delivery(), true, (&head(), &body), &[]).unwrap();
        for damaged in [
            bytes.slice(..bytes.len() - 5),
            Bytes::new(),
            Bytes::from_static(b"\x09"),
        ] {
            assert!(RawRequest::read(&damaged).unwrap_err().is_corrupt());
        }
    }
}
