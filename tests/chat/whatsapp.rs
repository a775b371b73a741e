//! WhatsApp requests in the shapes of the fixtures, with message ids of their own.

use serde_json::Value;

pub(crate) const PATH: &str = "/webhooks/whatsapp";

/// Bodies as WhatsApp posts them: texts, a reaction, a button, an edit, an unknown kind, several
/// messages at once, two accounts at once.
const SHAPES: [&str; 7] = [
    include_str!("../fixtures/whatsapp/text.json"),
    include_str!("../fixtures/whatsapp/batch_two_messages.json"),
    include_str!("../fixtures/whatsapp/reaction.json"),
    include_str!("../fixtures/whatsapp/interactive_button_reply.json"),
    include_str!("../fixtures/whatsapp/edit.json"),
    include_str!("../fixtures/whatsapp/batch_entries_and_changes.json"),
    include_str!("../fixtures/whatsapp/unsupported.json"),
];

/// One webhook request.
#[derive(Clone, Debug)]
pub(crate) struct Webhook {
    pub(crate) body: String,
    /// The account and the id of each message in it.
    pub(crate) messages: Vec<(String, String)>,
}

/// Requests that carry `wanted` messages together, each with its own id and customer.
pub(crate) fn webhooks(wanted: usize) -> Vec<Webhook> {
    let mut made = 0;
    let mut webhooks = Vec::new();
    for shape in SHAPES.iter().cycle() {
        if made >= wanted {
            break;
        }
        let webhook = webhook(shape, made);
        made += webhook.messages.len();
        webhooks.push(webhook);
    }
    webhooks
}

/// One customer's text.
pub(crate) fn text(id: &str, customer: &str, text: &str) -> String {
    let mut body: Value = serde_json::from_str(SHAPES[0]).unwrap();
    let message = &mut body["entry"][0]["changes"][0]["value"]["messages"][0];
    message["id"] = id.into();
    message["from"] = customer.into();
    message["text"]["body"] = text.into();
    body.to_string()
}

fn webhook(shape: &str, first: usize) -> Webhook {
    let mut body: Value = serde_json::from_str(shape).unwrap();
    let mut messages = Vec::new();
    for entry in body["entry"].as_array_mut().unwrap() {
        for change in entry["changes"].as_array_mut().unwrap() {
            let value = &mut change["value"];
            let account = value["metadata"]["phone_number_id"].clone();
            let list = value.get_mut("messages").and_then(Value::as_array_mut);
            for message in list.into_iter().flatten() {
                let number = first + messages.len();
                let id = format!("wamid.HBgLMTU1NTAxMDIyMjIVAgASGBQz{number:04}");
                message["id"] = id.clone().into();
                message["from"] = format!("1555020{number:04}").into();
                messages.push((account.as_str().unwrap().to_owned(), id));
            }
        }
    }
    Webhook {
        body: body.to_string(),
        messages,
    }
}
