//! Google Chat.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use http::request::Parts;

use crate::channel::contract::{Ack, Refusal, Reply, Terms};
use crate::channel::json::found::{Found, Message};
use crate::channel::json::reader::{Base, Reader, by_reader};
use crate::channel::json::tree::Node;
use crate::channel::scope::Scope;
use crate::channel::when::calendar;
use crate::record::Keep;
use crate::verify::contract::Verify;
use crate::verify::verified::Verified;

/// Google Chat's events: one per request, of a plain Chat app, of a Workspace add-on, or pushed
/// by Pub/Sub.
///
/// A click on a card carries the name of the card's message, the same for every click, so its key
/// says who clicked and when. Two apps in one space get the same message under the same name, so
/// the channel asks which app it speaks for. An app that gets a message both as an interaction and
/// by Pub/Sub gets two events, each with a key of its own: subscribe to one.
///
/// | | |
/// | --- | --- |
/// | key | `message.name` of `MESSAGE`; a click its kind, `message.name`, `user.name`, `eventTime`; other events their kind, `space.name`, `eventTime`; pushed by Pub/Sub `ce-source` and `ce-id`, else `pubsub`, `messageId` |
/// | scope | the app, as the channel is told; pushed by Pub/Sub the `subscription` |
/// | conversation | the space |
/// | time | `eventTime` |
/// | waits | up to 25 s of the 30 s that Google waits |
/// | repeats | Pub/Sub for seven days, where nothing else was set; otherwise undocumented |
/// | keeps | eight days |
/// | reply | the answer is the reply, and a repeat gets it |
/// | ack | 200, `{}` |
///
/// <https://developers.google.com/workspace/chat/receive-respond-interactions>,
/// <https://developers.google.com/workspace/events/guides>
///
/// ```
/// use http::request::Parts;
/// use tower_idempotency::channel::{GoogleChat, Refusal, Scope};
///
/// let check = |head: &Parts, _body: &[u8]| match head.headers.get("authorization") {
///     Some(token) if token_is_good(token.as_bytes()) => Ok(()),
///     _ => Err(Refusal::unverified("the bearer token is missing or bad")),
/// };
/// let chat = GoogleChat::verified_by(check, Scope::fixed("shop assistant"));
/// # fn token_is_good(_token: &[u8]) -> bool { true }
/// ```
#[derive(Clone, Debug)]
pub struct GoogleChat {
    base: Base,
    app: Scope,
}

/// Of a Chat app.
const PLAIN: &[&str] = &[
    "$.type",
    "$.eventTime",
    "$.user.name",
    "$.space.name",
    "$.message.name",
    "$.message.space.name",
];

/// Pushed by Pub/Sub.
const PUSHED: &[&str] = &[
    "$.subscription",
    "$.message.messageId",
    "$.message.attributes['ce-source']",
    "$.message.attributes['ce-id']",
    "$.message.attributes['ce-subject']",
    "$.message.attributes['ce-time']",
];

/// Of an add-on, beside the payload.
const ADD_ON: &[&str] = &["$.chat.eventTime", "$.chat.user.name"];

/// The payloads of an add-on, each called by what happened.
const PAYLOADS: [&str; 6] = [
    "messagePayload",
    "buttonClickedPayload",
    "appCommandPayload",
    "widgetUpdatedPayload",
    "addedToSpacePayload",
    "removedFromSpacePayload",
];

impl GoogleChat {
    /// Checks each request by `verifier` before it is read. `app` says which app is spoken to.
    pub fn verified_by<V: Verify>(verifier: V, app: Scope) -> Verified<Self, V> {
        Verified::new(Self::unverified(app), verifier)
    }

    /// Believes every request: for one that was verified in front of the layer. `app` says which
    /// app is spoken to.
    pub fn unverified(app: Scope) -> Self {
        let terms = Terms {
            wait: Duration::from_secs(25),
            keep: Keep::For(Duration::from_hours(8 * 24)),
            reply: Reply::Record,
            ack: Ack {
                content_type: Some(HeaderValue::from_static("application/json")),
                body: Bytes::from_static(b"{}"),
                ..Ack::default()
            },
            ..Terms::webhook("google_chat")
        };
        let of_payload = |payload: &str| {
            ["message.name", "space.name"].map(|at| format!("$.chat.{payload}.{at}"))
        };
        let fixed = [PLAIN, PUSHED, ADD_ON].concat();
        let mut reads: Vec<_> = fixed.into_iter().map(str::to_owned).collect();
        reads.extend(PAYLOADS.into_iter().flat_map(of_payload));
        Self {
            base: Base::new(terms, &reads),
            app,
        }
    }
}

impl Reader for GoogleChat {
    fn base(&self) -> &Base {
        &self.base
    }

    fn find(&self, head: &Parts, root: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
        if let Some(subscription) = root.at("subscription").text() {
            return pushed(subscription, root, found);
        }
        let Some(event) = Event::plain(root).or_else(|| Event::of_add_on(root.at("chat"))) else {
            return Ok(());
        };
        let scope = self.app.of(head, b"")?;
        event.add(&scope, root, found)
    }
}

by_reader!(GoogleChat);

fn pushed(scope: &str, root: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
    let attribute = |name| root.at("message").at("attributes").at(name).text();
    let message = Message {
        scope,
        conversation: attribute("ce-subject"),
        sent_at: attribute("ce-time").and_then(calendar),
        ..Message::default()
    };
    let id = match (attribute("ce-source"), attribute("ce-id")) {
        (Some(source), Some(id)) => [Some(source), Some(id)],
        _ => [Some("pubsub"), root.at("message").at("messageId").text()],
    };
    found.add_whole(root, id, message)
}

/// What happened in a space.
struct Event<'t> {
    kind: &'t str,
    message: Option<&'t str>,
    space: Option<&'t str>,
    user: Option<&'t str>,
    time: Option<&'t str>,
}

impl<'t> Event<'t> {
    fn plain(root: Node<'t>) -> Option<Self> {
        let message = root.at("message");
        let name = |at: Node<'t>| at.at("name").text();
        Some(Self {
            kind: root.at("type").text()?,
            message: name(message),
            space: name(root.at("space")).or_else(|| name(message.at("space"))),
            user: name(root.at("user")),
            time: root.at("eventTime").text(),
        })
    }

    fn of_add_on(chat: Node<'t>) -> Option<Self> {
        let payload = PAYLOADS.into_iter().find(|it| chat.at(it).is_object())?;
        let name = |at: &str| chat.at(payload).at(at).at("name").text();
        Some(Self {
            kind: payload.strip_suffix("Payload")?,
            message: name("message"),
            space: name("space"),
            user: chat.at("user").at("name").text(),
            time: chat.at("eventTime").text(),
        })
    }

    fn add(&self, scope: &str, place: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
        let message = Message {
            scope,
            conversation: self.space,
            sent_at: self.time.and_then(calendar),
            ..Message::default()
        };
        let kind = Some(self.kind);
        match self.kind {
            "MESSAGE" | "message" => found.add_whole(place, [self.message], message),
            "ADDED_TO_SPACE" | "REMOVED_FROM_SPACE" | "addedToSpace" | "removedFromSpace" => {
                found.add_whole(place, [kind, self.space, self.time], message)
            }
            _ => {
                let about = self.message.or(self.space);
                found.add_whole(place, [kind, about, self.user, self.time], message)
            }
        }
    }
}
