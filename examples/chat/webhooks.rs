//! The webhooks of WhatsApp and Telegram, answered in line by the shop's bot.

use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::{App, Failure};
use crate::shop;

/// One customer's text, as either channel brings it.
struct Incoming {
    /// The channel's own id of the message, for the log of runs.
    id: String,
    conversation: String,
    /// `None` for a picture, a reaction, a button: noted and not answered.
    text: Option<String>,
}

/// A request can carry several messages. Some are not texts, and statuses are no messages at all.
/// <https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/messages>
pub(crate) async fn whatsapp(
    State(app): State<App>,
    Json(body): Json<WhatsAppBody>,
) -> Result<Json<Value>, Failure> {
    let changes = body.entry.into_iter().flat_map(|entry| entry.changes);
    let messages = changes.flat_map(|change| change.value.messages);
    let incoming = messages.map(WhatsAppMessage::incoming).collect();
    // WhatsApp reads the status only; a bot sends its replies by another call. They are told
    // here so that they can be seen where the request is made.
    Ok(Json(json!({ "replies": handle(&app, incoming).await? })))
}

/// The answer to the webhook may be a call that Telegram carries out.
/// <https://core.telegram.org/bots/api#making-requests-when-getting-updates>
pub(crate) async fn telegram(
    State(app): State<App>,
    Path(bot): Path<String>,
    Json(update): Json<TelegramUpdate>,
) -> Result<Json<Value>, Failure> {
    let Some(message) = update.message else {
        return Ok(Json(json!({})));
    };
    let incoming = Incoming {
        id: format!("{bot}/{}", update.update_id),
        conversation: format!("telegram:{bot}:{}", message.chat.id),
        text: message.text,
    };
    let replies = handle(&app, vec![incoming]).await?;
    Ok(Json(replies.first().map_or_else(
        || json!({}),
        |text| json!({ "method": "sendMessage", "chat_id": message.chat.id, "text": text }),
    )))
}

/// Reads the open question, works for a while, answers: as an application does that has never
/// heard of repeats.
async fn handle(app: &App, incoming: Vec<Incoming>) -> Result<Vec<String>, Failure> {
    let mut replies = Vec::new();
    for Incoming {
        id,
        conversation,
        text,
    } in incoming
    {
        let run = app.storage.begin(id).await?;
        let step = app.storage.step(conversation.clone()).await?;
        app.work().await;
        let Some(text) = text else {
            app.storage.end(run).await?;
            continue;
        };
        let answer = shop::answer(step, &text);
        replies.push(answer.text.clone());
        app.storage.answer(run, conversation, text, answer).await?;
    }
    Ok(replies)
}

#[derive(Deserialize)]
pub(crate) struct WhatsAppBody {
    #[serde(default)]
    entry: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    changes: Vec<Change>,
}

#[derive(Deserialize)]
struct Change {
    value: ChangeValue,
}

#[derive(Deserialize)]
struct ChangeValue {
    #[serde(default)]
    messages: Vec<WhatsAppMessage>,
}

#[derive(Deserialize)]
struct WhatsAppMessage {
    #[serde(default)]
    id: String,
    #[serde(default)]
    from: String,
    text: Option<WhatsAppText>,
}

#[derive(Deserialize)]
struct WhatsAppText {
    body: String,
}

impl WhatsAppMessage {
    fn incoming(self) -> Incoming {
        Incoming {
            conversation: format!("whatsapp:{}", self.from),
            id: self.id,
            text: self.text.map(|text| text.body),
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct TelegramUpdate {
    update_id: i64,
    message: Option<TelegramMessage>,
}

#[derive(Deserialize)]
struct TelegramMessage {
    chat: TelegramChat,
    text: Option<String>,
}

#[derive(Deserialize)]
struct TelegramChat {
    id: i64,
}
