//! A success whose record is not confirmed is told as retryable, on every server: while another
//! process holds the store's file, as a backup does.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use rusqlite::Connection;
use tempfile::TempDir;
use tower_idempotency::store::{BoxStore, SqliteStore};

use crate::app::App;
use crate::peer::Ask;
use crate::peer::h2::{H2, answer_of};
use crate::peer::raw::{Raw, head};
use crate::rows::{ask, until};
use crate::server::{ALL, Kind, Server, layer_on};

/// A server whose store is held by somebody else from within a run on.
struct Held {
    server: Server,
    holder: Arc<Mutex<Option<Connection>>>,
    _folder: TempDir,
}

impl Held {
    async fn start(kind: Kind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys.db");
        let store = BoxStore::new(SqliteStore::open(&file).unwrap());
        let layer = layer_on(store).store_limit(Duration::from_millis(300));
        let holder = Arc::<Mutex<Option<Connection>>>::default();
        let held = Arc::clone(&holder);
        let takes = move || {
            let other = Connection::open(&file).unwrap();
            other.execute_batch("BEGIN IMMEDIATE").unwrap();
            *held.lock().unwrap() = Some(other);
        };
        let app = App {
            aside: Some(Arc::new(takes)),
            ..App::default()
        };
        Self {
            server: Server::of(kind, layer, app).await,
            holder,
            _folder: folder,
        }
    }

    /// The file is free again, the record is written, and the repeat gets it.
    async fn is_replayed_later(&self, message: &Ask, body: &[u8]) {
        drop(self.holder.lock().unwrap().take());
        until(|| self.server.layer.counts().recorded == 1).await;
        let repeat = ask(&self.server, message).await;
        let kind = self.server.kind;
        assert!(repeat.is_replayed(), "{kind:?}: {repeat:?}");
        assert_eq!((repeat.body.as_slice(), self.server.app.runs()), (body, 1));
        assert_eq!(self.server.layer.counts().unconfirmed, 1);
    }
}

#[tokio::test]
async fn an_answer_that_is_not_recorded_is_told_as_retryable_and_replayed_later() {
    for kind in ALL {
        let held = Held::start(kind).await;
        let message = Ask::new("k", "aside");
        let first = ask(&held.server, &message).await;
        assert_eq!(first.status, 503, "{kind:?}: {first:?}");
        assert_eq!(first.all("retry-after"), [b"1"]);
        assert!(first.text().contains("unconfirmed"), "{first:?}");
        held.is_replayed_later(&message, b"hello back").await;
    }
}

#[tokio::test]
async fn a_stream_that_is_not_recorded_has_no_clean_end_and_is_replayed_later() {
    for kind in ALL {
        let held = Held::start(kind).await;
        let message = Ask::new("k", "aside and streams");
        if kind.speaks_http1() {
            let mut raw = Raw::connect(held.server.address).await;
            raw.write(head(&message, "content-length: 5")).await;
            raw.write("hello").await;
            assert_eq!(raw.answer_head().await.unwrap().status, 200);
            assert_eq!(raw.chunk().await.unwrap(), b"hello ");
            assert_eq!(raw.chunk().await.unwrap(), b"back");
            assert_eq!(raw.chunk().await, None, "{kind:?}: a clean end");
        } else {
            let mut h2 = H2::connect(held.server.address).await;
            let (answer, mut body) = h2.begin(&message, None).await;
            body.send_data(Bytes::from_static(b"hello"), true).unwrap();
            let mut body = answer.await.unwrap().into_body();
            assert_eq!(body.data().await.unwrap().unwrap(), "hello ");
            assert_eq!(body.data().await.unwrap().unwrap(), "back");
            let end = body.data().await;
            assert!(matches!(end, Some(Err(_))), "{kind:?}: {end:?}");
        }
        held.is_replayed_later(&message, b"hello back").await;
    }
}

#[tokio::test]
async fn a_call_that_is_not_recorded_is_unavailable_and_replayed_later() {
    for kind in ALL.into_iter().filter(|kind| kind.speaks_http2()) {
        let held = Held::start(kind).await;
        let call = Ask::new("k", "aside, by gRPC").with("content-type", "application/grpc");
        let call = call.body(b"\0\0\0\0\0");
        let mut h2 = H2::connect(held.server.address).await;
        let first = h2.ask(&call).await;
        assert_eq!(first.status, 200, "{kind:?}: {first:?}");
        assert_eq!(first.all("grpc-status"), [b"14"], "{kind:?}: {first:?}");
        assert_eq!(first.all("grpc-retry-pushback-ms"), [b"1000"]);
        drop(held.holder.lock().unwrap().take());
        until(|| held.server.layer.counts().recorded == 1).await;
        let (answer, mut body) = h2.begin(&call, None).await;
        body.send_data(call.body.clone().into(), true).unwrap();
        let repeat = answer_of(answer).await.unwrap();
        assert!(repeat.is_replayed(), "{kind:?}: {repeat:?}");
        assert_eq!(repeat.all("grpc-status"), [b"0"]);
        assert_eq!(held.server.app.runs(), 1);
    }
}
