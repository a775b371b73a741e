//! Ack first: a WhatsApp bot that takes its time. The webhook is acknowledged in milliseconds, the
//! order is placed once, however often "yes" is redelivered, and survives a restart.
//!
//! `cargo run --example inbox`, then send the message as often as you like:
//!
//! ```console
//! $ curl -i 127.0.0.1:3000/whatsapp -H 'content-type: application/json' -d '{"entry":[{"changes":
//!   [{"value":{"metadata":{"phone_number_id":"1"},"messages":[{"id":"wamid.1",
//!   "from":"447700900123","text":{"body":"yes"}}]}}]}]}'
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use axum::extract::Extension;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tower_idempotency::BoxError;
use tower_idempotency::channel::WhatsApp;
use tower_idempotency::inbox::{Inbox, Received};
use tower_idempotency::store::SqliteStore;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut args = env::args().skip(1);
    let address = args.next().unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let file = args
        .next()
        .map_or_else(|| env::temp_dir().join("inbox.db"), PathBuf::from);

    // A real server checks who sends, by `WhatsApp::verified_by(MetaSignature::new(…))`.
    let inbox = Inbox::new(SqliteStore::open(file)?, WhatsApp::unverified());
    let (front, worker) = inbox.wrap(Router::new().route("/whatsapp", post(order)))?;
    let (stop, stopped) = oneshot::channel::<()>();
    #[expect(clippy::disallowed_methods, reason = "the application spawns")]
    let worker = tokio::spawn(worker.run_until(async { drop(stopped.await) }));

    let listener = TcpListener::bind(&address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, Router::new().route_service("/whatsapp", front))
        .with_graceful_shutdown(async { drop(tokio::signal::ctrl_c().await) })
        .await?;
    drop(stop); // The worker finishes what it is handling, and gives the rest back.
    worker.await?;
    Ok(())
}

/// Called by the worker with one message at a time; what fails is tried again.
async fn order(Extension(received): Extension<Received>, Json(body): Json<Value>) {
    let text = body.pointer("/entry/0/changes/0/value/messages/0/text/body");
    let text = text.and_then(Value::as_str).unwrap_or_default();
    tokio::time::sleep(Duration::from_millis(2400)).await; // intent, stock, payment, reply …
    let (id, attempt) = (received.delivery().key().id(), received.attempt());
    println!("{id} says {text:?}: one order of £48.00, attempt {attempt}");
}
