//! The layer before an axum handler.
//!
//! `cargo run --example axum_chat`, then send a message twice:
//!
//! ```console
//! $ curl -i 127.0.0.1:3000/messages -H 'x-user: ann' -H 'idempotency-key: 1' -d hello
//! ```
//!
//! The second answer is the first one, marked `idempotency-replayed: true`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use tokio::net::TcpListener;
use tower_idempotency::channel::{IdempotencyKey, Scope};
use tower_idempotency::store::MemoryStore;
use tower_idempotency::{BoxError, IdempotencyLayer};

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    // A real server scopes by the user whom it has authenticated: `Scope::extension`.
    let channel = IdempotencyKey::scoped_by(Scope::header("x-user"));
    let idempotency = IdempotencyLayer::new(MemoryStore::new(), channel);
    let app = Router::new()
        .route("/messages", post(send))
        .with_state(Arc::default())
        .layer(idempotency.clone());

    let address = std::env::args().nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:3000")).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app)
        .with_graceful_shutdown(async { drop(tokio::signal::ctrl_c().await) })
        .await?;

    // Runs whose callers have left go on; the end of the process would cut them.
    let left = idempotency.drain(Duration::from_secs(20)).await;
    println!("{left} runs were cut; {:?}", idempotency.counts());
    Ok(())
}

async fn send(State(sent): State<Arc<AtomicU64>>, text: String) -> String {
    let number = sent.fetch_add(1, Ordering::Relaxed) + 1;
    format!("message {number}: {text}\n")
}
