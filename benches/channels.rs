//! How long it takes to read the deliveries of a body, with all of it checked.
//!
//! Bodies are those of WhatsApp notifications: 1 KiB with 2 messages, 256 KiB with about 950. What
//! `serde_json::Value` and a walk take is measured in the same run.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark fails by panicking"
)]

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use http::Request;
use http::request::Parts;
use serde::de::IgnoredAny;
use serde_json::Value;
use tower_idempotency::channel::{Channel, JsonPath, WhatsApp};

fn main() {
    divan::main();
}

const SIZES: [usize; 3] = [1 << 10, 16 << 10, 256 << 10];

const IDS: &str = "$.entry[*].changes[*].value.messages[*].id";

fn head() -> Parts {
    Request::post("/").body(()).unwrap().into_parts().0
}

/// A notification of at most `size` bytes.
fn body(size: usize) -> Vec<u8> {
    let start = r#"{"object":"whatsapp_business_account","entry":[{"id":"102290129340398","changes":[{"value":{"messaging_product":"whatsapp","metadata":{"display_phone_number":"15550783881","phone_number_id":"106540352242922"},"contacts":[{"profile":{"name":"Sheena Nelson"},"wa_id":"16505551234"}],"messages":["#;
    let end = r#"]},"field":"messages"}]}]}"#;
    let mut text = start.to_owned();
    for n in 0.. {
        let comma = if n == 0 { "" } else { "," };
        let message = format!(
            r#"{comma}{{"from":"16505551234","id":"wamid.HBgLMTY1MDU1NTEyMzQVAgASGBQzQTRBNjU5OUFFRTAzODEwMT{n:08}","timestamp":"17494163{n:02}","type":"text","text":{{"body":"Does it come in another color? I would take number {n} then."}}}}"#,
        );
        if text.len() + message.len() + end.len() > size {
            break;
        }
        text.push_str(&message);
    }
    text.push_str(end);
    text.into_bytes()
}

fn read(bencher: Bencher<'_, '_>, size: usize, channel: &impl Channel) {
    let (head, body) = (head(), body(size));
    bencher
        .counter(BytesCount::new(body.len()))
        .bench_local(|| channel.deliveries(&head, black_box(&body)).unwrap());
}

#[divan::bench(args = SIZES)]
fn json_path(bencher: Bencher<'_, '_>, size: usize) {
    read(
        bencher,
        size,
        &JsonPath::new("shop", IDS).unwrap().unverified(),
    );
}

#[divan::bench(args = SIZES)]
fn json_path_with_scope_and_conversation(bencher: Bencher<'_, '_>, size: usize) {
    let channel = JsonPath::new("shop", IDS).unwrap();
    let channel = channel
        .scope("$.entry[*].changes[*].value.metadata.phone_number_id")
        .unwrap()
        .conversation("$.entry[*].changes[*].value.messages[*].from")
        .unwrap()
        .unverified();
    read(bencher, size, &channel);
}

#[divan::bench(args = SIZES)]
fn whatsapp(bencher: Bencher<'_, '_>, size: usize) {
    read(bencher, size, &WhatsApp::unverified());
}

#[divan::bench(args = SIZES)]
fn value_and_walk(bencher: Bencher<'_, '_>, size: usize) {
    let body = body(size);
    bencher
        .counter(BytesCount::new(body.len()))
        .bench_local(|| ids_of_value(black_box(&body)));
}

fn ids_of_value(body: &[u8]) -> Vec<String> {
    let document: Value = serde_json::from_slice(body).unwrap();
    let mut ids = Vec::new();
    for entry in document["entry"].as_array().unwrap() {
        for change in entry["changes"].as_array().unwrap() {
            for message in change["value"]["messages"].as_array().unwrap() {
                ids.extend(message["id"].as_str().map(str::to_owned));
            }
        }
    }
    ids
}

/// What it costs to look at the body at all.
#[divan::bench(args = SIZES)]
fn skip_all(bencher: Bencher<'_, '_>, size: usize) {
    let body = body(size);
    bencher
        .counter(BytesCount::new(body.len()))
        .bench_local(|| serde_json::from_slice::<IgnoredAny>(black_box(&body)).unwrap());
}
