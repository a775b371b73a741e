//! WhatsApp's requests, and the messages in them.

use serde_json::Value;

pub(crate) const TEXT: &str = include_str!("../fixtures/whatsapp/text.json");

/// Requests with one message or many, statuses, and redeliveries that are grouped in another way.
pub(crate) const DELIVERIES: [&str; 14] = [
    TEXT,
    include_str!("../fixtures/whatsapp/text_without_phone_number.json"),
    include_str!("../fixtures/whatsapp/batch_two_messages.json"),
    include_str!("../fixtures/whatsapp/batch_regrouped_redelivery.json"),
    include_str!("../fixtures/whatsapp/batch_entries_and_changes.json"),
    include_str!("../fixtures/whatsapp/interactive_button_reply.json"),
    include_str!("../fixtures/whatsapp/reaction.json"),
    include_str!("../fixtures/whatsapp/edit.json"),
    include_str!("../fixtures/whatsapp/revoke.json"),
    include_str!("../fixtures/whatsapp/unsupported.json"),
    include_str!("../fixtures/whatsapp/status_sent.json"),
    include_str!("../fixtures/whatsapp/status_delivered.json"),
    include_str!("../fixtures/whatsapp/status_read.json"),
    include_str!("../fixtures/whatsapp/statuses_sent_delivered_read.json"),
];

/// What a request is about: each message's account and id, each status' too.
pub(crate) fn messages(body: &str) -> Vec<String> {
    let body: Value = serde_json::from_str(body).unwrap();
    let mut found = Vec::new();
    for change in elements(&body["entry"]).flat_map(|entry| elements(&entry["changes"])) {
        let value = &change["value"];
        let account = &value["metadata"]["phone_number_id"];
        for message in elements(&value["messages"]) {
            found.push(format!("{account} {}", message["id"]));
        }
        for status in elements(&value["statuses"]) {
            found.push(format!("{account} {} {}", status["id"], status["status"]));
        }
    }
    found
}

fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
