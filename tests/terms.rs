//! Each channel's defaults fit what its sender documents: it waits less than the sender does, keeps
//! records longer than the sender repeats, and acks in the sender's words.
#![cfg(feature = "xml")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

#[path = "support/senders.rs"]
mod senders;

use std::fs;
use std::time::Duration;

use http::Request;
use serde::Deserialize;
use tower_idempotency::Keep;
use tower_idempotency::channel::{Reply, Terms};

use senders::channel;

#[derive(Deserialize)]
struct Sender {
    channel: String,
    ack_deadline_s: Option<u64>,
    redelivery_horizon_s: Option<u64>,
    suggested_ttl_s: u64,
    ack: Ack,
    replay_body_matters: bool,
}

#[derive(Deserialize)]
struct Ack {
    status: u16,
    content_type: Option<String>,
    body: String,
}

/// The senders whose channel is here, each with its terms for a form and for JSON.
fn senders() -> Vec<(Sender, [Terms; 2])> {
    let text = fs::read("tests/fixtures/channels.json").unwrap();
    let all: Vec<Sender> = serde_json::from_slice(&text).unwrap();
    let with_terms = all.into_iter().filter_map(|sender| {
        let channel = channel(&sender.channel)?;
        if sender.channel == "webchat" {
            // A client that makes its own key has no webhook's deadlines.
            return None;
        }
        let kinds = ["application/x-www-form-urlencoded", "application/json"];
        let terms = kinds.map(|kind| {
            let request = Request::post("/").header("content-type", kind).body(());
            channel.terms(&request.unwrap().into_parts().0).clone()
        });
        Some((sender, terms))
    });
    with_terms.collect()
}

fn kept(terms: &Terms) -> Option<Duration> {
    let Keep::For(time) = terms.keep else {
        return None;
    };
    Some(time)
}

#[test]
fn a_repeat_is_answered_before_the_sender_gives_up() {
    for (sender, both) in senders() {
        for terms in both {
            let deadline = sender.ack_deadline_s.map(Duration::from_secs);
            let in_time = deadline.is_none_or(|deadline| terms.wait < deadline);
            assert!(in_time, "{}: {:?}", sender.channel, terms.wait);
        }
    }
}

/// Field cases B64, B108, P72.
#[test]
fn records_are_kept_longer_than_the_sender_repeats() {
    for (sender, both) in senders() {
        for terms in both {
            let horizon = sender.redelivery_horizon_s.map(Duration::from_secs);
            let suggested = Duration::from_secs(sender.suggested_ttl_s);
            assert_eq!(kept(&terms), Some(suggested), "{}", sender.channel);
            assert!(Some(suggested) > horizon, "{}", sender.channel);
            let known = terms.horizon.or(horizon);
            assert_eq!(known, horizon, "{}", sender.channel);
        }
    }
}

/// Field case B129.
#[test]
fn an_ack_is_in_the_words_of_the_sender() {
    for (sender, both) in senders() {
        for Terms { ack, .. } in both {
            let kind = ack.content_type.map(|it| it.to_str().unwrap().to_owned());
            assert_eq!(ack.status.as_u16(), sender.ack.status, "{}", sender.channel);
            assert_eq!(kind, sender.ack.content_type, "{}", sender.channel);
            let body = match sender.channel.as_str() {
                // Described there in words: the only ack is that the answer comes later.
                "discord_interactions" => r#"{"type":5}"#,
                _ => &sender.ack.body,
            };
            assert_eq!(ack.body, body, "{}", sender.channel);
        }
    }
}

#[test]
fn where_the_answer_is_the_reply_a_repeat_gets_no_bare_ack() {
    for (sender, [form, json]) in senders() {
        let is_reply = form.reply == Reply::Record || json.reply == Reply::Record;
        assert_eq!(is_reply, sender.replay_body_matters, "{}", sender.channel);
    }
}
