//! Every channel, on any head and any bytes: an answer, the same one twice, each key once, and a
//! cut that takes out exactly what it is asked to.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::request::Parts;
use tower_idempotency::channel::{
    ByPath, Channel, Concern, FormField, HeaderId, JsonPath, Scope, XmlPath,
};
use tower_idempotency::{Delivery, Key};

use crate::request::Asked;
use crate::senders::channel;

/// Every channel of the crate.
const NAMES: [&str; 30] = [
    "bird",
    "by_path",
    "chatwoot",
    "cloudevents",
    "discord_interactions",
    "discord_webhook_events",
    "form_field",
    "form_json",
    "github",
    "google_chat",
    "header_id",
    "infobip",
    "instagram",
    "intercom",
    "json_path",
    "line",
    "matrix",
    "messenger",
    "slack",
    "standard_webhooks",
    "sunshine",
    "teams",
    "telegram",
    "twilio",
    "viber",
    "vonage",
    "webchat",
    "wechat",
    "whatsapp",
    "xml_path",
];

/// `data` is a request whose first word names the channel; an unknown word means one of them.
pub fn check(data: &[u8]) {
    let asked = Asked::parse(data);
    let sum: usize = asked.word.bytes().map(usize::from).sum();
    let named = named(asked.word).or_else(|| named(NAMES[sum % NAMES.len()]));
    let channel = named.expect("each name has a channel");
    let bits = asked
        .body
        .iter()
        .fold(0, |bits: u64, byte| bits.rotate_left(5) ^ u64::from(*byte));
    owes(&*channel, &asked.head, asked.body, bits);
}

fn named(name: &str) -> Option<Box<dyn Channel>> {
    Some(match name {
        "by_path" => Box::new(
            ByPath::new()
                .at("/hook", channel("whatsapp")?)
                .at("/", channel("slack")?),
        ),
        "form_field" => Box::new(
            FormField::new("form_field", "id")
                .and("to")
                .scope(Scope::form_field("a"))
                .unverified(),
        ),
        "form_json" => Box::new(
            FormField::json("form_json", "payload", "$.id")
                .ok()?
                .required()
                .unverified(),
        ),
        "header_id" => Box::new(
            HeaderId::new("header_id", "webhook-id")
                .scope(Scope::path_segment(1))
                .conversation(Scope::json("$.conversation.id").ok()?)
                .unverified(),
        ),
        "json_path" => Box::new(
            JsonPath::new("json_path", "$.entry[*].changes[*].value.messages[*]")
                .and_then(|it| it.id([".id", ".type"]))
                .and_then(|it| it.scope("$.entry[*].id"))
                .ok()?
                .unverified(),
        ),
        "xml_path" => Box::new(
            XmlPath::new("xml_path", "/xml/MsgId")
                .and_then(|it| Ok(it.scope(Scope::xml("/xml/ToUserName")?)))
                .ok()?
                .unverified(),
        ),
        _ => return channel(name),
    })
}

/// What each channel owes for each request.
pub(crate) fn owes(channel: &dyn Channel, head: &Parts, body: &[u8], bits: u64) {
    let concern = channel.concern(head);
    assert_eq!(concern, channel.concern(head), "the same concern twice");
    if concern == Ok(Concern::Pass) {
        return;
    }
    assert_eq!(channel.verify(head, body), Ok(()), "nothing is verified");
    let answer = channel.deliveries(head, body);
    assert_eq!(answer, channel.deliveries(head, body), "the same twice");
    let Ok(deliveries) = answer else { return };
    let name = channel.terms(head).channel.to_string();
    for delivery in &deliveries {
        assert_eq!(delivery.key().channel(), name);
        assert!(!delivery.key().id().trim_ascii().is_empty(), "a blank id");
    }
    let keys: Vec<&Key> = deliveries.iter().map(Delivery::key).collect();
    let once: BTreeSet<&Key> = keys.iter().copied().collect();
    assert_eq!(once.len(), keys.len(), "each key once");
    let body = Bytes::copy_from_slice(body);
    for bits in [0, u64::MAX, bits] {
        leaves_the_rest(channel, head, &body, &keys, bits);
    }
}

/// Cuts the deliveries out whose bits are set, and reads what is left.
fn leaves_the_rest(channel: &dyn Channel, head: &Parts, body: &Bytes, keys: &[&Key], bits: u64) {
    let numbered = keys.iter().enumerate();
    let (gone, rest): (Vec<_>, Vec<_>) = numbered.partition(|(at, _)| bits >> (at % 64) & 1 == 1);
    let gone: Vec<&Key> = gone.into_iter().map(|(_, key)| *key).collect();
    let rest: Vec<&Key> = rest.into_iter().map(|(_, key)| *key).collect();
    let Some(left) = channel.without(head, body, &gone) else {
        return;
    };
    assert!(gone.is_empty() == (left == *body), "a cut cuts");
    assert!(is_within(&left, body), "a cut adds nothing");
    let after = channel.deliveries(head, &left);
    let after = after.expect("what is left can be read");
    let after: Vec<&Key> = after.iter().map(Delivery::key).collect();
    assert_eq!(after, rest, "exactly the rest is left");
}

/// Whether `left` is `body` without some of its bytes.
fn is_within(left: &[u8], body: &[u8]) -> bool {
    let mut body = body.iter();
    left.iter().all(|byte| body.any(|it| it == byte))
}
