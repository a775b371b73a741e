//! The web chat: a page, and one path to send to and to list.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Html;
use serde::Deserialize;

use crate::app::{App, Failure};
use crate::storage::Message;

#[derive(Deserialize)]
pub(crate) struct Outgoing {
    text: String,
}

pub(crate) async fn page() -> Html<&'static str> {
    Html(include_str!("page.html"))
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

pub(crate) async fn list(
    State(app): State<App>,
    Path(conversation): Path<String>,
) -> Result<Json<Vec<Message>>, Failure> {
    Ok(Json(app.storage.messages(conversation).await?))
}

fn text_of(headers: &HeaderMap, name: &str) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}
