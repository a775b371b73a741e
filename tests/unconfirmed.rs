//! Proves that no success leaves the layer before its record is confirmed: while another process
//! holds the store's file, as a backup does, the caller is told to come again, and gets the record
//! when it does.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(
    clippy::disallowed_methods,
    reason = "a test owns the tasks that it spawns"
)]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use http_body::{Body as HttpBody, Frame};
use http_body_util::combinators::BoxBody;
use rusqlite::Connection;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::time::{Sleep, sleep, timeout};
use tower_idempotency::channel::IdempotencyKey;
use tower_idempotency::store::SqliteStore;
use tower_idempotency::{IdempotencyLayer, OnUnconfirmed};

type Layered = IdempotencyLayer<SqliteStore, IdempotencyKey>;

/// Another process' hold on the store's file.
#[derive(Clone)]
struct Holder {
    file: PathBuf,
    held: Arc<Mutex<Option<Connection>>>,
}

impl Holder {
    fn take(&self) {
        let other = Connection::open(&self.file).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        *self.held.lock().unwrap() = Some(other);
    }

    fn give_back(&self) {
        drop(self.held.lock().unwrap().take());
    }
}

/// Handles a message; once it has, the store's file is held by somebody else.
async fn handle(State(holder): State<Holder>, headers: HeaderMap) -> Response {
    holder.take();
    if !headers.contains_key("x-stream") {
        return (StatusCode::CREATED, "handled").into_response();
    }
    if headers
        .get("x-stream")
        .is_some_and(|it| it == "knows its end")
    {
        let left = BoxBody::new(http_body_util::Full::from("led"));
        return Response::new(Body::new(KnowsItsEnd {
            first: Some(Box::pin(sleep(Duration::from_millis(20)))),
            left,
        }));
    }
    let parts = stream::iter(["hand", "led"]).then(|part| async move {
        sleep(Duration::from_millis(20)).await;
        Ok::<_, std::io::Error>(Bytes::from(part))
    });
    Body::from_stream(parts).into_response()
}

/// Two frames, the first of which takes its time; after the second it says that it has ended.
struct KnowsItsEnd {
    first: Option<Pin<Box<Sleep>>>,
    left: BoxBody<Bytes, Infallible>,
}

impl HttpBody for KnowsItsEnd {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(sleep) = &mut self.first {
            ready!(sleep.as_mut().poll(cx));
            self.first = None;
            return Poll::Ready(Some(Ok(Frame::data("hand".into()))));
        }
        Pin::new(&mut self.left).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.left.is_end_stream()
    }
}

struct Server {
    _folder: TempDir,
    layer: Layered,
    holder: Holder,
    address: SocketAddr,
}

async fn serve(options: impl Fn(Layered) -> Layered) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let file: &Path = &folder.path().join("keys.db");
    let store = SqliteStore::open(file).unwrap();
    let layer = IdempotencyLayer::new(store, IdempotencyKey::unscoped());
    let layer = options(layer.store_limit(Duration::from_millis(300)));
    let holder = Holder {
        file: file.to_owned(),
        held: Arc::default(),
    };
    let app = Router::new()
        .route("/", post(handle))
        .with_state(holder.clone())
        .layer(layer.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(axum::serve(listener, app).into_future());
    Server {
        _folder: folder,
        layer,
        holder,
        address,
    }
}

impl Server {
    async fn post(&self, headers: &[(&str, &str)]) -> reqwest::Response {
        let url = format!("http://{}", self.address);
        let mut request = reqwest::Client::new()
            .post(url)
            .header("idempotency-key", "k");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().await.unwrap()
    }

    /// The file is free again, and the record is written behind the caller's back.
    async fn recorded(&self) {
        self.holder.give_back();
        let recorded = async {
            while self.layer.counts().recorded == 0 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_mins(1), recorded).await.unwrap();
    }
}

/// Field cases B70, P11, P32.
#[tokio::test]
async fn a_success_that_is_not_recorded_is_told_as_retryable_and_replayed_later() {
    let server = serve(|layer| layer).await;
    let first = server.post(&[]).await;
    assert_eq!(first.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(first.headers()["retry-after"], "1");
    assert!(first.text().await.unwrap().contains("unconfirmed"));
    server.recorded().await;
    let repeat = server.post(&[]).await;
    assert_eq!(repeat.headers()["idempotency-replayed"], "true");
    assert_eq!(repeat.text().await.unwrap(), "handled");
    let counts = server.layer.counts();
    assert_eq!((counts.runs, counts.unconfirmed), (1, 1));
}

#[tokio::test]
async fn a_stream_whose_record_is_not_written_has_no_clean_end() {
    // Where the handler's stream tells which frame is the last, that is held back too.
    for (stream, sent) in [("any", "handled"), ("knows its end", "hand")] {
        let server = serve(|layer| layer).await;
        let mut first = server.post(&[("x-stream", stream)]).await;
        assert_eq!(first.status(), StatusCode::OK);
        let mut came = String::new();
        let end = loop {
            match first.chunk().await {
                Ok(Some(chunk)) => came.push_str(str::from_utf8(&chunk).unwrap()),
                end => break end,
            }
        };
        assert!(end.is_err(), "a clean end after {came:?}");
        assert_eq!(came, sent);
        server.recorded().await;
        let repeat = server.post(&[("x-stream", stream)]).await;
        assert_eq!(repeat.text().await.unwrap(), "handled");
        assert_eq!(server.layer.counts().runs, 1);
    }
}

#[tokio::test]
async fn a_grpc_call_is_told_that_it_is_unavailable() {
    let server = serve(|layer| layer.also_record(StatusCode::CREATED)).await;
    let client = reqwest::Client::builder()
        .http2_prior_knowledge()
        .build()
        .unwrap();
    let request = client
        .post(format!("http://{}", server.address))
        .header("content-type", "application/grpc")
        .header("idempotency-key", "k")
        .body(vec![0, 0, 0, 0, 0]);
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["grpc-status"], "14");
    assert_eq!(answer.headers()["grpc-retry-pushback-ms"], "1000");
    server.recorded().await;
}

/// Field case B70.
#[tokio::test]
async fn the_success_is_answered_all_the_same_where_that_is_spelled_out() {
    let server = serve(|layer| layer.on_unconfirmed(OnUnconfirmed::AnswerSuccess)).await;
    let first = server.post(&[]).await;
    assert_eq!(first.status(), StatusCode::CREATED);
    assert_eq!(first.text().await.unwrap(), "handled");
    server.recorded().await;
    assert_eq!(server.layer.counts().unconfirmed, 1);
}
