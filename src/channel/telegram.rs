//! Telegram bots.

use std::time::Duration;

use http::request::Parts;

use crate::channel::contract::{Refusal, Reply, Terms};
use crate::channel::json::found::{Found, Message};
use crate::channel::json::reader::{Base, Reader, by_reader};
use crate::channel::json::tree::Node;
use crate::channel::scope::Scope;
use crate::channel::when::seconds;
use crate::record::Keep;
use crate::verify::contract::Verify;
use crate::verify::verified::Verified;

/// Telegram's Bot API: one update per request, numbered per bot.
///
/// The update does not name the bot, so the channel asks for it: the segment of the path that
/// holds it, or a fixed name if there is one bot. Ids of messages are counted per chat and repeated
/// by edits, button presses and reactions, so they are no keys.
///
/// | | |
/// | --- | --- |
/// | key | `update_id` |
/// | scope | the bot, as the channel is told |
/// | conversation | the chat, else the person |
/// | time | `edit_date`, else `date` |
/// | waits | up to 30 s of the 60 s that Telegram waits |
/// | repeats | for a day, every two minutes at most; presses of buttons for 150 s, inline queries for 30 s |
/// | keeps | two days |
/// | reply | the answer may be a call that Telegram carries out, and a repeat gets it |
/// | ack | 200 without a body |
///
/// <https://core.telegram.org/bots/api#getting-updates>,
/// <https://github.com/tdlib/telegram-bot-api>
///
/// ```
/// # #[cfg(feature = "verify")] {
/// use tower_idempotency::channel::{Scope, Telegram};
/// use tower_idempotency::verify::TelegramToken;
///
/// // POST /webhooks/telegram/{bot}
/// let telegram = Telegram::verified_by(TelegramToken::new("secret token"), Scope::path_segment(2));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Telegram {
    base: Base,
    bot: Scope,
}

const READS: &[&str] = &[
    "$.update_id",
    "$.*.chat.id",
    "$.*.message.chat.id",
    "$.*.from.id",
    "$.*.date",
    "$.*.edit_date",
];

impl Telegram {
    /// Checks each request by `verifier`, such as
    /// [`TelegramToken`](crate::verify::TelegramToken), before it is read. `bot` says whose
    /// update it is.
    pub fn verified_by<V: Verify>(verifier: V, bot: Scope) -> Verified<Self, V> {
        Verified::new(Self::unverified(bot), verifier)
    }

    /// Believes every request: whoever guesses the next update id suppresses that update, and ids
    /// count up by one. `bot` says whose update it is.
    pub fn unverified(bot: Scope) -> Self {
        let terms = Terms {
            wait: Duration::from_secs(30),
            keep: Keep::For(Duration::from_hours(48)),
            horizon: Some(Duration::from_hours(24)),
            reply: Reply::Record,
            ..Terms::webhook("telegram")
        };
        Self {
            base: Base::new(terms, READS),
            bot,
        }
    }
}

impl Reader for Telegram {
    fn base(&self) -> &Base {
        &self.base
    }

    fn find(&self, head: &Parts, root: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
        let Some(id) = root.at("update_id").text() else {
            return Ok(());
        };
        // The one member beside the id is what happened.
        let mut members = root.members().map(|(_, member)| member);
        let event = members.find(|member| member.is_object());
        let text = |names: &[&str]| event.and_then(|event| event.down(names).text());
        let conversation = text(&["chat", "id"])
            .or_else(|| text(&["message", "chat", "id"]))
            .or_else(|| text(&["from", "id"]));
        let sent_at = text(&["edit_date"]).or_else(|| text(&["date"]));
        let bot = self.bot.of(head, b"")?;
        let message = Message {
            scope: &bot,
            id: &[id],
            conversation,
            sent_at: sent_at.and_then(seconds),
        };
        found.add(root, message)
    }
}

by_reader!(Telegram);
