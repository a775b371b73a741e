//! Slack: events, slash commands, interactions.

use std::time::Duration;

use http::request::Parts;

use crate::channel::contract::{Channel, Concern, Refusal, Reply, Terms};
use crate::channel::form::{fields, is_form};
use crate::channel::json::found::{Found, Message};
use crate::channel::json::reader::{self, Base, Reader, concern};
use crate::channel::json::shape::Shape;
use crate::channel::json::tree::Node;
use crate::channel::single::Single;
use crate::channel::text::present;
use crate::channel::when::seconds;
use crate::delivery::Delivery;
use crate::record::Keep;
use crate::verify::contract::Verify;
use crate::verify::verified::Verified;

/// Slack's requests: events in JSON, slash commands in a form, interactions in JSON inside of a
/// form. One message in each, told apart by their content type and fields.
///
/// A mention in a channel comes as two events, `message` and `app_mention`, each with an id of its
/// own: subscribe to one. The retry headers say nothing about whether an earlier attempt arrived,
/// so they are not read.
///
/// `url_verification`, `ssl_check`, `block_suggestion` and `app_rate_limited` have no key and pass
/// every time.
///
/// | | |
/// | --- | --- |
/// | key | events `event_id`; commands `command`, `trigger_id`; interactions `interaction`, `trigger_id`; `view_closed`, `view.id` |
/// | scope | none: ids are unique in all of Slack |
/// | conversation | the channel, where the request names one |
/// | time | `event_time` |
/// | waits | up to 2 s of the 3 s that Slack waits |
/// | repeats | events three times in six minutes, hourly for a day where the app asked for delayed events; commands and interactions never |
/// | keeps | 25 hours |
/// | reply | to commands and interactions the answer is the reply, and a repeat gets it |
/// | ack | 200 without a body |
///
/// <https://docs.slack.dev/apis/events-api>,
/// <https://docs.slack.dev/interactivity/implementing-slash-commands>,
/// <https://docs.slack.dev/interactivity/handling-user-interaction>
///
/// ```
/// # #[cfg(feature = "verify")] {
/// use tower_idempotency::channel::Slack;
/// use tower_idempotency::verify::SlackSignature;
///
/// let slack = Slack::verified_by(SlackSignature::new("signing secret"));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Slack {
    events: Base,
    replied: Base,
}

const EVENT: &[&str] = &[
    "$.event_id",
    "$.event_time",
    "$.event.channel",
    "$.event.item.channel",
];

const INTERACTION: &[&str] = &[
    "$.type",
    "$.trigger_id",
    "$.view.id",
    "$.channel.id",
    "$.container.channel_id",
];

impl Slack {
    /// Checks each request by `verifier`, such as
    /// [`SlackSignature`](crate::verify::SlackSignature), before it is read.
    pub fn verified_by<V: Verify>(verifier: V) -> Verified<Self, V> {
        Verified::new(Self::unverified(), verifier)
    }

    /// Believes every request: for one that was verified in front of the layer.
    pub fn unverified() -> Self {
        let events = Terms {
            wait: Duration::from_secs(2),
            keep: Keep::For(Duration::from_hours(25)),
            horizon: Some(Duration::from_secs(370)),
            ..Terms::webhook("slack")
        };
        let replied = Terms {
            reply: Reply::Record,
            horizon: None,
            ..events.clone()
        };
        Self {
            events: Base::new(events, EVENT),
            replied: Base::new(replied, INTERACTION),
        }
    }

    fn base_for(&self, head: &Parts) -> &Base {
        if is_form(head) {
            &self.replied
        } else {
            &self.events
        }
    }

    /// A form without an interaction: a command, or a handshake.
    fn command(&self, body: &[u8]) -> Result<Vec<Delivery>, Refusal> {
        let values = fields(body, &["command", "trigger_id", "channel_id"])?;
        let mut values = values.iter().map(|it| present(it.as_deref()));
        let mut next = || values.next().flatten();
        let (command, trigger, channel) = (next(), next(), next());
        let (Some(_), Some(trigger)) = (command, trigger) else {
            return Ok(Vec::new());
        };
        let single = Single {
            id: &["command", trigger],
            conversation: channel,
            ..Single::default()
        };
        single.delivery(&self.replied.terms.channel)
    }
}

impl Reader for Slack {
    fn base(&self) -> &Base {
        &self.events
    }

    fn shape(&self, head: &Parts) -> &Shape {
        &self.base_for(head).shape
    }

    fn find(&self, head: &Parts, root: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
        if is_form(head) {
            interaction(root, found)
        } else {
            event(root, found)
        }
    }
}

fn event(root: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
    let Some(id) = root.at("event_id").text() else {
        return Ok(());
    };
    let event = root.at("event");
    let channel = event.at("channel").text();
    let message = Message {
        id: &[id],
        conversation: channel.or_else(|| event.at("item").at("channel").text()),
        sent_at: root.at("event_time").text().and_then(seconds),
        ..Message::default()
    };
    found.add(root, message)
}

fn interaction(root: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
    let kind = root.at("type").text();
    let id = match (kind, root.at("trigger_id").text()) {
        // Asked while the user types; each wants an answer of its own.
        (Some("block_suggestion"), _) => None,
        (Some("view_closed"), _) => {
            let view = root.at("view").at("id").text();
            view.map(|view| ["view_closed", view])
        }
        (_, trigger) => trigger.map(|trigger| ["interaction", trigger]),
    };
    let Some(id) = id else {
        return Ok(());
    };
    let channel = root.at("channel").at("id").text();
    let message = Message {
        id: &id,
        conversation: channel.or_else(|| root.at("container").at("channel_id").text()),
        ..Message::default()
    };
    found.add(root, message)
}

impl Channel for Slack {
    fn terms(&self, head: &Parts) -> &Terms {
        &self.base_for(head).terms
    }

    fn all_terms(&self) -> Vec<&Terms> {
        vec![&self.events.terms, &self.replied.terms]
    }

    fn concern(&self, head: &Parts) -> Result<Concern, Refusal> {
        Ok(concern(head))
    }

    fn deliveries(&self, head: &Parts, body: &[u8]) -> Result<Vec<Delivery>, Refusal> {
        if !is_form(head) {
            return reader::deliveries(self, head, body);
        }
        match fields(body, &["payload"])?.pop().flatten() {
            Some(payload) => reader::deliveries(self, head, payload.as_bytes()),
            None => self.command(body),
        }
    }
}
