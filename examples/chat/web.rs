//! The web chat: one path to send to and to list.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;

use crate::app::{App, Failure};
use crate::storage::{Listed, Message};

#[derive(Deserialize)]
pub(crate) struct Outgoing {
    text: String,
}

/// Adds a message. It knows nothing of keys and repeats: the layer around it does.
pub(crate) async fn send(
    State(app): State<App>,
    Path(conversation): Path<String>,
    headers: HeaderMap,
    Json(outgoing): Json<Outgoing>,
) -> Result<(StatusCode, Json<Message>), Failure> {
    let user = text_of(&headers, "x-user");
    let run = app
        .storage
        .begin(text_of(&headers, "idempotency-key"))
        .await?;
    app.work().await;
    let message = app
        .storage
        .add_message(run, conversation, user, outgoing.text)
        .await?;
    Ok((StatusCode::CREATED, Json(message)))
}

/// The messages, oldest first. Who made a message also gets its key, and knows it by that.
pub(crate) async fn list(
    State(app): State<App>,
    Path(conversation): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Vec<Listed>>, Failure> {
    let user = text_of(&headers, "x-user");
    Ok(Json(app.storage.messages(conversation, user).await?))
}

fn text_of(headers: &HeaderMap, name: &str) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}
