//! The page of the web chat: plain files, built into the program.

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;

pub(crate) fn routes() -> Router {
    Router::new()
        .route("/", get(Html(include_str!("page/index.html"))))
        .route("/page/{file}", get(file))
}

async fn file(Path(name): Path<String>) -> Response {
    let (kind, text) = match name.as_str() {
        "chat.css" => ("text/css", include_str!("page/chat.css")),
        "chat.js" => ("text/javascript", include_str!("page/chat.js")),
        // What a page of your own takes: it knows nothing of this chat.
        "idempotent-send.js" => ("text/javascript", MODULE),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    ([(CONTENT_TYPE, kind)], text).into_response()
}

const MODULE: &str = include_str!("../../web/idempotent-send.js");
