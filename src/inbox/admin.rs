//! What an operator sees and does, as JSON over HTTP.

use std::time::SystemTime;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use http::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize};
use serde_json::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::error::Error;
use crate::inbox::letters::{Letter, Letters, Stored};
use crate::store::queue::backlog::Death;
use crate::store::queue::contract::Queue;

/// A router for operators, to be mounted behind the application's own authentication: what it
/// shows are customers' messages, and what it does is handled.
///
/// | request | does |
/// | --- | --- |
/// | `GET /stats` | counts what waits and what is dead |
/// | `GET /waiting?limit=100` | lists what waits or is being handled, the first ones first |
/// | `GET /dead?after=7&limit=100` | lists what is dead, in the order of the deaths |
/// | `POST /dead/{death}/redrive` | undoes one death; 404 if it was undone before, or never was |
/// | `POST /dead/redrive` | undoes all deaths |
/// | `DELETE /dead/{death}` | drops one dead message; its key stays |
///
/// Answers are JSON and never cached; times are RFC 3339, by the store's clock. Header fields other
/// than `Content-Type` are not shown, since they may hold credentials. A store that does not answer
/// is 503. At most 1,000 messages are listed at once.
///
/// ```
/// use axum::Router;
/// use tower_idempotency::inbox::{Letters, admin};
/// # use tower_idempotency::store::MemoryStore;
///
/// # fn app(store: MemoryStore) -> Router {
/// Router::new().nest("/admin/inbox", admin(Letters::new(store))) // behind your own auth
/// # }
/// ```
pub fn admin<Q: Queue>(letters: Letters<Q>) -> Router {
    Router::new()
        .route("/stats", get(stats))
        .route("/waiting", get(waiting))
        .route("/dead", get(dead))
        .route("/dead/redrive", post(redrive_all))
        .route("/dead/{death}/redrive", post(redrive))
        .route("/dead/{death}", delete(bury))
        .with_state(letters)
}

/// Which part of a list is wanted.
#[derive(Deserialize)]
struct Page {
    after: Option<i64>,
    limit: Option<usize>,
}

impl Page {
    fn limit(&self) -> usize {
        self.limit.unwrap_or(100).min(1000)
    }
}

type Answer = Result<Response, Failure>;

async fn stats<Q: Queue>(State(letters): State<Letters<Q>>) -> Answer {
    let backlog = letters.backlog().await?;
    let oldest = backlog.oldest.map(|age| age.as_secs_f64());
    Ok(answer(json!({
        "waiting": backlog.waiting,
        "lines": backlog.lines,
        "dead": backlog.dead,
        "oldest_seconds": oldest,
    })))
}

async fn waiting<Q: Queue>(State(letters): State<Letters<Q>>, Query(page): Query<Page>) -> Answer {
    Ok(list(letters.waiting(page.limit()).await?))
}

async fn dead<Q: Queue>(State(letters): State<Letters<Q>>, Query(page): Query<Page>) -> Answer {
    let after = page.after.map(Death::new);
    Ok(list(letters.dead(after, page.limit()).await?))
}

async fn redrive<Q: Queue>(State(letters): State<Letters<Q>>, Path(death): Path<i64>) -> Answer {
    if letters.redrive(Death::new(death)).await? {
        Ok(answer(json!({"redriven": 1})))
    } else {
        Err(Failure::NoDeath)
    }
}

async fn redrive_all<Q: Queue>(State(letters): State<Letters<Q>>) -> Answer {
    let redriven = letters.redrive_all().await?;
    Ok(answer(json!({"redriven": redriven})))
}

async fn bury<Q: Queue>(State(letters): State<Letters<Q>>, Path(death): Path<i64>) -> Answer {
    if letters.bury(Death::new(death)).await? {
        Ok(answer(json!({"dropped": 1})))
    } else {
        Err(Failure::NoDeath)
    }
}

fn list(letters: Vec<Letter>) -> Response {
    let shown: Vec<Shown> = letters.into_iter().map(Shown::of).collect();
    answer(shown)
}

fn answer(body: impl Serialize) -> Response {
    let mut response = Json(body).into_response();
    let no_store = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, no_store);
    response
}

/// Why a request of an operator was not served.
enum Failure {
    Store(Error),
    NoDeath,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let (status, detail) = match self {
            Self::NoDeath => (
                StatusCode::NOT_FOUND,
                "there is no such death, or it was undone before".to_owned(),
            ),
            Self::Store(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
        };
        (status, Json(json!({"detail": detail}))).into_response()
    }
}

/// A letter as it is shown.
#[derive(Serialize)]
struct Shown {
    death: Option<i64>,
    attempts: u32,
    fault: Option<String>,
    received_at: String,
    died_at: Option<String>,
    #[serde(flatten)]
    message: Message,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Message {
    Read {
        channel: String,
        scope: String,
        id: String,
        conversation: Option<String>,
        method: String,
        uri: String,
        content_type: Option<String>,
        body: String,
    },
    Unreadable {
        unreadable: String,
    },
}

impl Shown {
    fn of(letter: Letter) -> Self {
        Self {
            death: letter.death.map(Death::number),
            attempts: letter.attempts,
            fault: letter.fault,
            received_at: rfc3339(letter.received_at),
            died_at: letter.died_at.map(rfc3339),
            message: match letter.request {
                Ok(stored) => Message::of(&stored),
                Err(error) => Message::Unreadable {
                    unreadable: error.to_string(),
                },
            },
        }
    }
}

impl Message {
    fn of(stored: &Stored) -> Self {
        let (delivery, head) = (&stored.delivery, &stored.head);
        let content_type = head.headers.get(CONTENT_TYPE);
        Self::Read {
            channel: delivery.key().channel().to_owned(),
            scope: delivery.key().scope().to_owned(),
            id: delivery.key().id().to_owned(),
            conversation: delivery.in_conversation().map(|c| c.id().to_owned()),
            method: head.method.to_string(),
            uri: head.uri.to_string(),
            content_type: content_type
                .and_then(|v| v.to_str().ok())
                .map(str::to_owned),
            body: String::from_utf8_lossy(&stored.body).into_owned(),
        }
    }
}

/// Whole milliseconds; an impossible time is told as the number of seconds since 1970.
fn rfc3339(at: SystemTime) -> String {
    let at = OffsetDateTime::from(at);
    let at = at.replace_millisecond(at.millisecond()).unwrap_or(at);
    at.format(&Rfc3339)
        .unwrap_or_else(|_| at.unix_timestamp().to_string())
}
