//! A gateway: puts the layer in front of a chat endpoint in any language.
//!
//! ```console
//! $ cargo run --example gateway -- --check examples/gateway/gateway.toml
//! $ DATABASE_URL=sqlite:keys.db cargo run --example gateway -- examples/gateway/gateway.toml
//! ```
//!
//! The file lists routes; `gateway.toml` shows each field. What is no delivery streams through.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program speaks to its user"
)]
#![expect(clippy::disallowed_methods, reason = "the server owns its connections")]

mod channels;
mod check;
mod fault;
mod file;
mod forward;
mod metrics;
mod presets;
mod proxy;
mod route;
mod server;
mod upgrade;

use std::process::ExitCode;

use tower_idempotency::BoxError;
use tower_idempotency::store::connect;
use tracing_subscriber::EnvFilter;

use crate::check::Settings;
use crate::server::Server;

const USAGE: &str = "usage: gateway [--check] FILE";

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), BoxError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["--check", path] => {
            let settings = read(path)?;
            println!("{path}: {} routes, no fault", settings.routes.len());
            Ok(())
        }
        [path] if !path.starts_with('-') => serve(read(path)?).await,
        _ => Err(USAGE.into()),
    }
}

fn read(path: &str) -> Result<Settings, BoxError> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    let secret = |name: &str| std::env::var(name).ok();
    Settings::of(path, &text, &secret).map_err(|faults| faults.to_string().into())
}

async fn serve(settings: Settings) -> Result<(), BoxError> {
    // Keys must outlive the process: what was done before a restart is still done after it.
    let url = std::env::var("DATABASE_URL").unwrap_or_else(|_| "sqlite:gateway.db".to_owned());
    let store = connect(&url).await?;
    let server = Server::bind(settings, &store).await?;
    println!("listening on http://{}", server.address());
    if let Some(address) = server.metrics_address() {
        println!("metrics on http://{address}");
    }
    let left = server.run(stopped()).await;
    if left > 0 {
        eprintln!("{left} runs are cut; their messages run again when they are repeated");
    }
    Ok(())
}

/// Ctrl-C, or the signal by which service managers stop a process.
async fn stopped() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminated) = signal(SignalKind::terminate()) else {
        drop(tokio::signal::ctrl_c().await);
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated.recv() => {}
    }
}
