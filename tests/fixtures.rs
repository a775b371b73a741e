//! Requests as the senders make them: each gives the keys that it should, a repeat those of the
//! first, and what looks alike has others.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "support/senders.rs"]
mod senders;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use http::Request;
use http::request::Parts;
use serde::Deserialize;
use tower_idempotency::channel::Concern;
use tower_idempotency::{Delivery, Key};

use senders::channel;

#[derive(Deserialize)]
struct Case {
    file: String,
    channel: String,
    method: Option<String>,
    path: Option<String>,
    content_type: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    key_parts: Vec<Vec<Part>>,
    scope: Option<Part>,
    #[serde(default)]
    redelivers: Vec<String>,
    #[serde(default)]
    must_not_collide_with: Vec<String>,
}

#[derive(Deserialize)]
struct Part {
    literal: Option<String>,
    value: Option<String>,
}

impl Part {
    fn text(&self) -> &str {
        self.literal.as_ref().or(self.value.as_ref()).unwrap()
    }
}

impl Case {
    fn all() -> Vec<Self> {
        let text = fs::read("tests/fixtures/manifest.json").unwrap();
        let cases: Vec<Self> = serde_json::from_slice(&text).unwrap();
        let has_channel = |case: &Self| channel(&case.channel).is_some();
        cases.into_iter().filter(has_channel).collect()
    }

    fn head(&self) -> Parts {
        let mut request = Request::builder()
            .method(self.method.as_deref().unwrap_or("POST"))
            .uri(self.path.as_deref().unwrap_or("/hook"));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if let (Some(kind), false) = (
            &self.content_type,
            self.headers.contains_key("Content-Type"),
        ) {
            request = request.header("content-type", kind);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn deliveries(&self) -> Vec<Delivery> {
        let channel = channel(&self.channel).unwrap();
        let head = self.head();
        if channel.concern(&head).unwrap() != Concern::Read {
            return Vec::new();
        }
        let body = fs::read(format!("tests/fixtures/{}", self.file)).unwrap();
        channel.deliveries(&head, &body).unwrap()
    }

    fn keys(&self) -> BTreeSet<Key> {
        self.deliveries()
            .iter()
            .map(|it| it.key().clone())
            .collect()
    }

    fn expected_ids(&self) -> Vec<String> {
        let id = |parts: &Vec<Part>| {
            let parts: Vec<_> = parts.iter().map(Part::text).collect();
            Key::new("", "", &parts).id().to_owned()
        };
        self.key_parts.iter().map(id).collect()
    }
}

fn named(file: &str) -> Case {
    Case::all()
        .into_iter()
        .find(|case| case.file == file)
        .unwrap()
}

/// Field case B58.
#[test]
fn every_request_gives_its_keys_in_their_order() {
    for case in Case::all() {
        let all = case.deliveries();
        let ids: Vec<_> = all.iter().map(|it| it.key().id().to_owned()).collect();
        assert_eq!(ids, case.expected_ids(), "{}", case.file);
        for delivery in &all {
            assert_eq!(delivery.key().channel(), case.channel, "{}", case.file);
        }
    }
}

#[test]
fn a_key_is_scoped_by_what_the_request_says() {
    for case in Case::all() {
        let expected = case.scope.as_ref().and_then(|scope| scope.value.as_deref());
        for delivery in case.deliveries() {
            let scope = delivery.key().scope();
            assert_eq!(scope, expected.unwrap_or(scope), "{}", case.file);
        }
    }
}

#[test]
fn a_repeat_shares_a_key_with_the_first() {
    for case in Case::all() {
        for first in &case.redelivers {
            assert!(
                !case.keys().is_disjoint(&named(first).keys()),
                "{} {first}",
                case.file
            );
        }
    }
}

/// Field case B94.
#[test]
fn what_looks_alike_has_other_keys() {
    for case in Case::all() {
        for other in &case.must_not_collide_with {
            assert!(
                case.keys().is_disjoint(&named(other).keys()),
                "{} {other}",
                case.file
            );
        }
    }
}

#[test]
fn every_sender_has_a_channel() {
    let text = fs::read("tests/fixtures/manifest.json").unwrap();
    let cases: Vec<Case> = serde_json::from_slice(&text).unwrap();
    assert_eq!(cases.len(), 180);
    let mut without = cases.iter().filter(|case| channel(&case.channel).is_none());
    assert_eq!(without.next().map(|case| &case.channel), None);
}
