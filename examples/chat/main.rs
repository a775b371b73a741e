//! A chat server whose messages survive retries: a web chat and two webhooks behind one layer, and a
//! slow bot behind a queue.
//!
//! `cargo run --example chat`, then open the address that it prints, or paste the lines below it.
//! Kill it, start it again: everything is in one file. `config.rs` lists the settings. With
//! `--features metrics` it shows Prometheus at `/metrics` what it measures.

mod app;
mod config;
mod guide;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(not(feature = "metrics"))]
#[path = "no_metrics.rs"]
mod metrics;
mod page;
mod protection;
mod queue;
mod shop;
mod storage;
mod web;
mod webhooks;

use std::time::Duration;

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Serialize;
use tokio::net::TcpListener;
use tower_idempotency::BoxError;
use tracing_subscriber::EnvFilter;

use crate::app::{App, Failure};
use crate::config::Config;
use crate::protection::Protection;
use crate::queue::Queue;
use crate::storage::{Order, Storage};

/// How long runs whose callers have left may go on at the end.
const DRAIN: Duration = Duration::from_secs(20);

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let config = Config::from_env()?;
    let app = App {
        storage: Storage::open(&config.db)?,
        delay: config.delay,
    };
    let protection = Protection::new(&config).await?;
    let listener = TcpListener::bind(&config.addr)
        .await
        .map_err(|e| format!("ADDR={}: {e}", config.addr))?;
    guide::print(listener.local_addr()?, &config)?;

    let (slow_bot, queue) = Queue::start(app.clone(), &config, protection.store())?;
    let metrics = metrics::routes(protection.store())?;
    let routes = routes(app, protection.clone())
        .merge(slow_bot)
        .merge(metrics);
    axum::serve(listener, protection.around(routes))
        .with_graceful_shutdown(interrupted())
        .await?;
    protection.drain(DRAIN).await;
    match queue {
        Some(queue) => queue.end().await,
        None => Ok(()),
    }
}

fn routes(app: App, protection: Protection) -> Router {
    let stats = Router::new()
        .route("/stats", get(stats))
        .with_state((app.clone(), protection));
    Router::new()
        .route(
            "/chat/{conversation}/messages",
            post(web::send).get(web::list),
        )
        .route("/webhooks/whatsapp", post(webhooks::whatsapp))
        .route("/webhooks/telegram/{bot}", post(webhooks::telegram))
        .route("/orders", get(orders))
        .with_state(app)
        .merge(stats)
        .merge(page::routes())
}

async fn orders(State(app): State<App>) -> Result<Json<Vec<Order>>, Failure> {
    Ok(Json(app.storage.orders().await?))
}

#[derive(Serialize)]
struct Stats {
    runs: i64,
    replayed: u64,
    orders: i64,
    messages: i64,
}

/// `runs`, `orders` and `messages` since the file was made, `replayed` since the process began.
async fn stats(State((app, protection)): State<(App, Protection)>) -> Result<Json<Stats>, Failure> {
    let counts = app.storage.counts().await?;
    Ok(Json(Stats {
        runs: counts.runs,
        replayed: protection.replayed(),
        orders: counts.orders,
        messages: counts.messages,
    }))
}

async fn interrupted() {
    if let Err(error) = tokio::signal::ctrl_c().await {
        tracing::error!(%error, "Ctrl-C cannot be heard; the server stops now");
    }
}
