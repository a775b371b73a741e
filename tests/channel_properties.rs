//! What every channel owes, whatever it is sent: an answer and never a panic, the same answer each
//! time, each key once, and a cut that takes out exactly what it is asked to.
#![cfg(feature = "xml")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

#[path = "support/senders.rs"]
mod senders;

use std::collections::BTreeSet;
use std::fs;

use bytes::Bytes;
use http::Request;
use http::request::Parts;
use proptest::prelude::*;
use proptest::sample::Index;
use serde::Deserialize;
use tower_idempotency::channel::{Channel, Refusal};
use tower_idempotency::{Delivery, Key};

use senders::channel;

/// A request of a sender.
#[derive(Clone, Debug)]
struct Sent {
    channel: String,
    head: Parts,
    body: Vec<u8>,
}

#[derive(Deserialize)]
struct Case {
    file: String,
    channel: String,
    path: Option<String>,
    content_type: Option<String>,
    #[serde(default)]
    headers: std::collections::BTreeMap<String, String>,
}

impl Case {
    fn sent(self) -> Sent {
        let mut request = Request::post(self.path.as_deref().unwrap_or("/hook"));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if let Some(kind) = self.content_type.filter(|_| self.headers.is_empty()) {
            request = request.header("content-type", kind);
        }
        Sent {
            channel: self.channel,
            head: request.body(()).unwrap().into_parts().0,
            body: fs::read(format!("tests/fixtures/{}", self.file)).unwrap(),
        }
    }
}

fn all_sent() -> Vec<Sent> {
    let text = fs::read("tests/fixtures/manifest.json").unwrap();
    let cases: Vec<Case> = serde_json::from_slice(&text).unwrap();
    cases.into_iter().map(Case::sent).collect()
}

impl Sent {
    fn channel(&self) -> Box<dyn Channel> {
        channel(&self.channel).unwrap()
    }

    /// What the channel says, which it says twice and which names each key once.
    fn deliveries(&self) -> Result<Vec<Delivery>, Refusal> {
        let channel = self.channel();
        let all = channel.deliveries(&self.head, &self.body);
        assert_eq!(
            all,
            channel.deliveries(&self.head, &self.body),
            "the same answer twice"
        );
        if let Ok(all) = &all {
            let keys: BTreeSet<_> = all.iter().map(Delivery::key).collect();
            assert_eq!(keys.len(), all.len(), "each key once");
        }
        all
    }

    fn keys(&self) -> Vec<Key> {
        let all = self.deliveries().unwrap_or_default();
        all.iter().map(|it| it.key().clone()).collect()
    }

    /// The body without those of its messages that `goes` says; checked to leave the others.
    fn check_cut(&self, goes: impl Fn(usize) -> bool) {
        let keys = self.keys();
        let numbered = keys.iter().enumerate();
        let (gone, rest): (Vec<_>, Vec<_>) = numbered.partition(|(at, _)| goes(*at));
        let gone: Vec<&Key> = gone.into_iter().map(|(_, key)| key).collect();
        let body = Bytes::from(self.body.clone());
        let Some(left) = self.channel().without(&self.head, &body, &gone) else {
            return;
        };
        let left = Self {
            body: left.to_vec(),
            ..self.clone()
        };
        let rest: Vec<Key> = rest.into_iter().map(|(_, key)| key.clone()).collect();
        assert_eq!(left.keys(), rest, "exactly the rest is left");
        assert!(gone.is_empty() || left.body.len() < self.body.len());
    }
}

/// A request as a sender makes it, with its bytes changed here and there.
fn mangled() -> impl Strategy<Value = Sent> {
    let change = (any::<Index>(), prop::option::of(any::<u8>()), any::<bool>());
    let changes = prop::collection::vec(change, 0..4);
    (prop::sample::select(all_sent()), changes).prop_map(|(mut sent, changes)| {
        for (at, byte, insert) in changes {
            let at = at.index(sent.body.len() + 1);
            let end = if insert {
                at
            } else {
                (at + 1).min(sent.body.len())
            };
            sent.body.splice(at..end, byte);
        }
        sent
    })
}

/// A request of any sender with any bytes, and with JSON that no sender makes.
fn foreign() -> impl Strategy<Value = Sent> {
    let json = any::<u32>().prop_map(|n| format!("{n}")).boxed();
    let names = prop::sample::select(vec![
        "entry",
        "changes",
        "value",
        "messages",
        "id",
        "events",
        "results",
        "message",
        "type",
        "messaging",
        "update_id",
        "event",
        "data",
        "chat",
        "from",
    ]);
    let json = json.prop_recursive(6, 60, 5, move |inner| {
        let member =
            (names.clone(), inner.clone()).prop_map(|(name, it)| format!("\"{name}\":{it}"));
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(|all| format!("[{}]", all.join(","))),
            prop::collection::vec(member, 0..5).prop_map(|all| format!("{{{}}}", all.join(","))),
        ]
    });
    let body = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        json.prop_map(String::into_bytes),
    ];
    (prop::sample::select(all_sent()), body).prop_map(|(sent, body)| Sent { body, ..sent })
}

proptest! {
    #[test]
    fn a_mangled_request_has_an_answer_and_can_be_cut(sent in mangled(), which in any::<u64>()) {
        sent.check_cut(|at| which >> (at % 64) & 1 == 1);
    }

    #[test]
    fn a_foreign_body_has_an_answer_and_can_be_cut(sent in foreign(), which in any::<u64>()) {
        sent.check_cut(|at| which >> (at % 64) & 1 == 1);
    }
}

#[test]
fn every_request_can_be_cut_at_every_message() {
    for sent in all_sent() {
        let messages = sent.keys().len();
        for which in 0..1_usize << messages {
            sent.check_cut(|at| which >> at & 1 == 1);
        }
    }
}

#[test]
fn batches_are_cut_and_not_passed_whole() {
    for sent in all_sent().iter().filter(|sent| sent.keys().len() > 1) {
        let keys = sent.keys();
        let body = Bytes::from(sent.body.clone());
        let left = sent
            .channel()
            .without(&sent.head, &body, &[keys.first().unwrap()]);
        assert!(left.is_some(), "{sent:?}");
    }
}

/// A body with `inner` where every member of interest may be.
fn everywhere(inner: &str) -> String {
    let names = [
        "entry",
        "events",
        "results",
        "message",
        "update_id",
        "id",
        "event",
        "chat",
        "data",
        "app",
        "type",
        "conversation",
        "destination",
    ];
    let members = names.map(|name| format!("\"{name}\":{inner}"));
    format!("{{{}}}", members.join(","))
}

#[test]
fn ten_thousand_levels_are_neither_a_panic_nor_a_hang() {
    let arrays = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let objects = format!("{}1{}", "{\"id\":".repeat(10_000), "}".repeat(10_000));
    let open = "[".repeat(10_000);
    let bodies = [
        everywhere(&arrays),
        everywhere(&objects),
        everywhere(&open),
        arrays,
        objects,
        open,
    ];
    let mut seen = BTreeSet::new();
    let one_each = all_sent()
        .into_iter()
        .filter(|sent| seen.insert(sent.channel.clone()));
    for mut sent in one_each {
        for body in &bodies {
            sent.body = body.clone().into_bytes();
            sent.check_cut(|_| true);
        }
    }
}

#[test]
fn a_thousand_messages_in_a_body_are_a_thousand_deliveries() {
    let messages: Vec<_> = (0..1_000)
        .map(|n| format!("{{\"id\":\"wamid.{n}\",\"from\":\"{n}\"}}"))
        .collect();
    let body = format!(
        r#"{{"entry":[{{"changes":[{{"value":{{"metadata":{{"phone_number_id":"1"}},"messages":[{}]}}}}]}}]}}"#,
        messages.join(","),
    );
    let sent = Sent {
        channel: "whatsapp".into(),
        head: Request::post("/").body(()).unwrap().into_parts().0,
        body: body.into_bytes(),
    };
    assert_eq!(sent.keys().len(), 1_000);
    sent.check_cut(|at| at % 3 == 0);
    sent.check_cut(|_| true);
}
