//! Side effects once: a chat server whose message, unread counter and notification are one with the
//! record of the request. Kill it wherever you like, send the message again as often as you like.
//!
//! `cargo run --example effects`, then:
//!
//! ```console
//! $ curl -i 127.0.0.1:3000/messages -H 'x-user: ann' -H 'idempotency-key: 1' -d hello
//! ```
//!
//! On PostgreSQL the handler borrows `claimed.transaction().await?` instead, and writes with it as
//! with any `tokio_postgres` client; nothing else changes.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::env;
use std::path::PathBuf;

use axum::Router;
use axum::extract::Extension;
use axum::http::StatusCode;
use axum::routing::post;
use rusqlite::Connection;
use tokio::net::TcpListener;
use tower_idempotency::channel::{IdempotencyKey, Scope};
use tower_idempotency::effects::{Effect, Outbox};
use tower_idempotency::store::SqliteStore;
use tower_idempotency::{BoxError, Claimed, Error, IdempotencyLayer};

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS unread (n INTEGER NOT NULL);
INSERT INTO unread SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM unread);";

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut args = env::args().skip(1);
    let address = args.next().unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let file = args
        .next()
        .map_or_else(|| env::temp_dir().join("effects.db"), PathBuf::from);
    Connection::open(&file)?.execute_batch(TABLES)?;
    let store = SqliteStore::open(&file)?;

    // Effects are handled one at a time in their conversation, until they are done or dead.
    let worker = Outbox::new(&store)?.each(notify)?;
    #[expect(clippy::disallowed_methods, reason = "the application spawns")]
    tokio::spawn(worker.run());

    let channel = IdempotencyKey::scoped_by(Scope::header("x-user"));
    let app = Router::new()
        .route("/messages", post(message))
        .layer(IdempotencyLayer::new(store, channel));
    let listener = TcpListener::bind(&address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}

async fn message(
    Extension(claimed): Extension<Claimed>,
    text: String,
) -> Result<String, (StatusCode, String)> {
    let stored = store(&claimed, text).await;
    stored.map_err(|e| (StatusCode::SERVICE_UNAVAILABLE, e.to_string()))
}

/// Writes in the transaction that is committed with the answer, and has one notification sent.
async fn store(claimed: &Claimed, text: String) -> Result<String, Error> {
    claimed.enqueue("notify", text.clone())?;
    let id = claimed.in_transaction(move |tables| {
        tables.execute("UPDATE unread SET n = n + 1", [])?;
        tables.execute("INSERT INTO messages (text) VALUES (?1)", [text])?;
        Ok(tables.last_insert_rowid())
    });
    Ok(format!("stored as message {}", id.await?))
}

/// A call elsewhere, with a key by which the other side can tell a second attempt.
async fn notify(effect: Effect) -> Result<(), BoxError> {
    let (text, key) = (str::from_utf8(effect.payload())?, effect.step_key("push"));
    println!("notify: {text:?}, attempt {}, key {key}", effect.attempt());
    Ok(())
}
