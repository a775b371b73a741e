//! The messaging events that Messenger and Instagram share.

use crate::channel::contract::Refusal;
use crate::channel::json::found::{Found, Message};
use crate::channel::json::reader::scope_at;
use crate::channel::json::tree::Node;
use crate::channel::when::millis;

/// The places to read.
pub(crate) fn reads() -> Vec<String> {
    let of_event = |list| {
        EVENT
            .iter()
            .map(move |at| format!("$.entry[*].{list}[*].{at}"))
    };
    let mut reads = vec!["$.entry[*].id".to_owned()];
    reads.extend(LISTS.into_iter().flat_map(of_event));
    reads
}

/// Where events stand: `standby` has those that another app of the page answers.
const LISTS: [&str; 2] = ["messaging", "standby"];

const EVENT: &[&str] = &[
    "sender.id",
    "sender.user_ref",
    "recipient.id",
    "timestamp",
    "message.mid",
    "message.is_echo",
    "message.is_deleted",
    "message_edit.mid",
    "message_edit.num_edit",
    "reaction.mid",
    "reaction.action",
    "postback.payload",
    "referral.ref",
    "optin.type",
    "account_linking.status",
    "pass_thread_control.new_owner_app_id",
    "take_thread_control.previous_owner_app_id",
    "request_thread_control.requested_owner_app_id",
];

/// Events without an id of their own: who did it and when tells them apart.
const BY_TIME: [&str; 7] = [
    "postback",
    "referral",
    "optin",
    "account_linking",
    "pass_thread_control",
    "take_thread_control",
    "request_thread_control",
];

/// Adds the events in `root`.
pub(crate) fn find(root: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
    for entry in root.at("entry").elements() {
        for (list, events) in entry.members() {
            for event in events.elements() {
                add(list, event, entry.at("id"), found)?;
            }
        }
    }
    Ok(())
}

fn add(
    list: &str,
    event: Node<'_>,
    account: Node<'_>,
    found: &mut Found<'_>,
) -> Result<(), Refusal> {
    let Some(mut id) = id(event) else {
        return Ok(());
    };
    if list == "standby" {
        id.insert(0, list);
    }
    let from = event.at("sender").first_text(&["id", "user_ref"]);
    let to = event.at("recipient").at("id").text();
    let is_echo = event.at("message").at("is_echo").is_true();
    let message = Message {
        scope: scope_at(account, "entry.id")?,
        id: &id,
        conversation: if is_echo { to } else { from },
        sent_at: event.at("timestamp").text().and_then(millis),
    };
    found.add(event, message)
}

/// The parts of the id; `None` if there is none: receipts name other messages or nothing.
fn id(event: Node<'_>) -> Option<Vec<&str>> {
    let from = || event.at("sender").first_text(&["id", "user_ref"]);
    let time = || event.at("timestamp").text();
    let message = event.at("message");
    if let Some(mid) = message.at("mid").text() {
        let kind = if message.at("is_deleted").is_true() {
            Some("unsend")
        } else {
            message.at("is_echo").is_true().then_some("echo")
        };
        return Some(kind.into_iter().chain([mid]).collect());
    }
    let edit = event.at("message_edit");
    if let Some(mid) = edit.at("mid").text() {
        return Some(vec!["edit", mid, edit.at("num_edit").text()?]);
    }
    let reaction = event.at("reaction");
    if let Some(mid) = reaction.at("mid").text() {
        let action = reaction.at("action").text()?;
        return Some(vec!["reaction", mid, from()?, action, time()?]);
    }
    let kind = BY_TIME
        .into_iter()
        .find(|kind| event.at(kind).is_object())?;
    Some(vec![kind, from()?, time()?])
}
