//! What is cut out of a JSON body is the elements and one comma for each: every other byte stays.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::Request;
use http::request::Parts;
use serde::Deserialize;
use serde_json::value::RawValue;
use tower_idempotency::channel::{Channel, JsonPath};
use tower_idempotency::{Delivery, Key};

use crate::channels::owes;

/// The document as another reader sees it.
#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    m: Vec<&'a RawValue>,
}

/// The first byte of `data` says which messages go, the rest is a body.
pub fn check(data: &[u8]) {
    let Some((bits, body)) = data.split_first() else {
        return;
    };
    let bits = u64::from(*bits).wrapping_mul(0x0101_0101_0101_0101);
    let channel = JsonPath::new("cut", "$.m[*].id").expect("a path");
    let channel = channel.unverified();
    let head = Request::post("/").body(()).expect("a head").into_parts().0;
    owes(&channel, &head, body, bits);

    let body = Bytes::copy_from_slice(body);
    let Some(all) = Elements::of(&body) else {
        return;
    };
    let keys = keys(&channel, &head, &body);
    let numbered = keys.iter().enumerate();
    let gone: BTreeSet<&Key> = numbered
        .filter(|(at, _)| bits >> (at % 64) & 1 == 1)
        .map(|(_, key)| key)
        .collect();
    let asked: Vec<&Key> = gone.iter().copied().collect();
    let Some(left) = channel.without(&head, &body, &asked) else {
        assert!(keys.is_empty(), "an element of an array can be cut");
        return;
    };
    let goes = |element: &[u8]| {
        let alone = [b"{\"m\":[", element, b"]}"].concat();
        let keys = self::keys(&channel, &head, &alone);
        keys.iter().any(|key| gone.contains(key))
    };
    let expected = all.without_commas(goes);
    let rest = Elements::of(&left).expect("what is left is such a document");
    let found = rest.without_commas(|_| false);
    assert_eq!(found, expected, "every other byte stays");
}

fn keys(channel: &dyn Channel, head: &Parts, body: &[u8]) -> Vec<Key> {
    let all = channel.deliveries(head, body).unwrap_or_default();
    all.iter().map(Delivery::key).cloned().collect()
}

/// The elements of the array, and what stands in front of each and behind the last.
struct Elements<'a> {
    elements: Vec<(&'a [u8], &'a [u8])>,
    end: &'a [u8],
}

impl<'a> Elements<'a> {
    fn of(body: &'a [u8]) -> Option<Self> {
        let document: Document<'a> = serde_json::from_slice(body).ok()?;
        let mut at = 0;
        let mut elements = Vec::new();
        for element in document.m {
            let element = element.get().as_bytes();
            let start = element.as_ptr().addr() - body.as_ptr().addr();
            elements.push((&body[at..start], element));
            at = start + element.len();
        }
        Some(Self {
            elements,
            end: &body[at..],
        })
    }

    /// The body without the elements that go, and without the commas between elements.
    fn without_commas(&self, goes: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        let mut out = Vec::new();
        for (number, (before, element)) in self.elements.iter().enumerate() {
            let blank = before.iter().filter(|byte| number == 0 || **byte != b',');
            out.extend(blank);
            if !goes(element) {
                out.extend_from_slice(element);
            }
        }
        out.extend_from_slice(self.end);
        out
    }
}
