//! A run that fails, however it does, reaches its caller as it is and leaves the key free, the same
//! on every server. The statuses that are failures are in the table.

use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use tokio::net::TcpListener;
use tower::{ServiceBuilder, service_fn};
use tower_idempotency::{BoxError, RequestBody};

use crate::peer::h2::{H2, answer_of};
use crate::peer::raw::{Raw, head};
use crate::peer::{Ask, Seen};
use crate::rows::{ask, until};
use crate::server::{ALL, Kind, Layered, Server, connection, layer};

/// Sends, and gives the answer if one comes.
async fn try_ask(server: (Kind, SocketAddr), message: &Ask) -> Option<Seen> {
    let (kind, address) = server;
    if kind.speaks_http1() {
        let mut raw = Raw::connect(address).await;
        raw.write(head(message, "content-length: 5")).await;
        raw.write("hello").await;
        return raw.answer().await;
    }
    let mut h2 = H2::connect(address).await;
    let (answer, mut body) = h2.begin(message, None).await;
    body.send_data(Bytes::from_static(b"hello"), true).unwrap();
    answer_of(answer).await.ok()
}

#[tokio::test]
async fn a_panic_is_no_answer_and_frees_the_key() {
    for kind in ALL {
        let server = Server::start(kind, layer()).await;
        let message = Ask::new("k", "panics first");
        let none = try_ask((kind, server.address), &message).await;
        assert_eq!(none, None, "{kind:?}");
        until(|| server.layer.counts().released == 1).await;
        let second = ask(&server, &message).await;
        assert_eq!((second.status, second.is_replayed()), (200, false));
        assert_eq!((second.body, server.app.runs()), (b"hello back".into(), 2));
    }
}

/// The error of a service under the layer. Handlers of axum and tonic have none.
///
/// Field case P16.
#[tokio::test]
async fn an_error_of_the_service_is_no_answer_and_frees_the_key() {
    for kind in [Kind::Hyper1, Kind::Hyper2] {
        let layer = layer();
        let server = (kind, failing_first(kind, &layer).await);
        let message = Ask::new("k", "");
        assert_eq!(try_ask(server, &message).await, None, "{kind:?}");
        until(|| layer.counts().released == 1).await;
        let second = try_ask(server, &message).await.unwrap();
        assert_eq!((second.status, second.is_replayed()), (200, false));
        let third = try_ask(server, &message).await.unwrap();
        assert!(third.is_replayed(), "{third:?}");
        assert_eq!(layer.counts().runs, 2);
    }
}

/// A hyper server whose service fails at its first call.
async fn failing_first(kind: Kind, layer: &Layered) -> SocketAddr {
    let runs = Arc::new(AtomicU64::new(0));
    let handler = service_fn(move |_: Request<RequestBody<Incoming>>| {
        ready(match runs.fetch_add(1, Ordering::SeqCst) {
            0 => Err(BoxError::from("out of order")),
            _ => Ok(Response::new(whole("hello back"))),
        })
    });
    let service = ServiceBuilder::new().layer(layer.clone()).service(handler);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(connection(kind, stream, service.clone()));
        }
    });
    address
}

fn whole(text: &'static str) -> UnsyncBoxBody<Bytes, BoxError> {
    let body = Full::new(Bytes::from_static(text.as_bytes()));
    body.map_err(|never| match never {}).boxed_unsync()
}
