//! The layer before a plain hyper server of HTTP/1 and HTTP/2.
//!
//! `cargo run --example hyper_server`, then send a message twice:
//!
//! ```console
//! $ curl -i 127.0.0.1:3000 -H 'x-user: ann' -H 'idempotency-key: 1' -d hello
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it does")]
#![expect(clippy::disallowed_methods, reason = "the server owns its connections")]

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tower::{Layer, service_fn};
use tower_idempotency::channel::{IdempotencyKey, Scope};
use tower_idempotency::store::MemoryStore;
use tower_idempotency::{BoxError, IdempotencyLayer, RequestBody};

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let channel = IdempotencyKey::scoped_by(Scope::header("x-user"));
    let idempotency = IdempotencyLayer::new(MemoryStore::new(), channel);
    let service = TowerToHyperService::new(idempotency.layer(service_fn(send)));
    let server = auto::Builder::new(TokioExecutor::new());
    let connections = GracefulShutdown::new();

    let address = std::env::args().nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:3000")).await?;
    println!("listening on http://{}", listener.local_addr()?);
    loop {
        let (stream, _) = tokio::select! {
            accepted = listener.accept() => accepted?,
            _ = tokio::signal::ctrl_c() => break,
        };
        let connection = server.serve_connection(TokioIo::new(stream), service.clone());
        let connection = connections.watch(connection.into_owned());
        // A client that breaks off is no concern of the server's.
        tokio::spawn(async { drop(connection.await) });
    }
    connections.shutdown().await;
    let left = idempotency.drain(Duration::from_secs(20)).await;
    println!("{left} runs were cut; {:?}", idempotency.counts());
    Ok(())
}

/// The body is the client's own, or has been read by the layer.
async fn send(request: Request<RequestBody<Incoming>>) -> Result<Response<Full<Bytes>>, BoxError> {
    let text = request.into_body().collect().await?.to_bytes();
    Ok(Response::new(Full::new(text)))
}
