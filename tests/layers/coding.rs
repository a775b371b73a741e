//! Compression of answers.

use axum::http::StatusCode;
use tower_http::compression::CompressionLayer;
use tower_idempotency::IdempotencyLayer;
use tower_idempotency::channel::{ByPath, Channel, Concern, Refusal, Terms};
use tower_idempotency::store::MemoryStore;
use tower_idempotency::{Delivery, Key};

use crate::app::{TEXT, layer, message, router, send};

const GZIP: &[(&str, &str)] = &[("accept-encoding", "gzip")];
const NOTHING: &[(&str, &str)] = &[];

/// Field case B34.
#[tokio::test]
async fn compression_outside_gives_each_client_what_it_accepts() {
    let (router, runs) = router();
    let app = router.layer(layer()).layer(CompressionLayer::new());
    let first = send(&app, message(GZIP)).await;
    assert_eq!(first.header("content-encoding"), "gzip");
    let plain = send(&app, message(NOTHING)).await;
    assert!(plain.is_replayed());
    assert_eq!(
        (plain.header("content-encoding"), plain.text()),
        ("", TEXT.repeat(50))
    );
    let other = send(&app, message(&[("accept-encoding", "br")])).await;
    assert!(other.is_replayed());
    assert_eq!(other.header("content-encoding"), "br");
    let same = send(&app, message(GZIP)).await;
    assert_eq!((same.body, runs.count()), (first.body, 1));
}

/// Field case B34.
#[tokio::test]
async fn compression_inside_is_replayed_only_to_clients_that_accept_the_first_ones_coding() {
    let (router, runs) = router();
    let app = router.layer(CompressionLayer::new()).layer(layer());
    let first = send(&app, message(GZIP)).await;
    assert_eq!(first.header("content-encoding"), "gzip");
    for accepted in [
        NOTHING,
        &[("accept-encoding", "br")],
        &[("accept-encoding", "gzip;q=0")],
    ] {
        let refused = send(&app, message(accepted)).await;
        assert_eq!(refused.status, StatusCode::NOT_ACCEPTABLE);
        assert!(refused.text().contains("response-not-acceptable"));
        assert_eq!(refused.header("content-encoding"), "");
    }
    let same = send(&app, message(&[("accept-encoding", "br, gzip")])).await;
    assert_eq!(
        (same.is_replayed(), same.body, runs.count()),
        (true, first.body, 1)
    );
}

/// A sender that reads only the status.
struct Webhook(Terms);

impl Channel for Webhook {
    fn terms(&self, _head: &http::request::Parts) -> &Terms {
        &self.0
    }

    fn concern(&self, _head: &http::request::Parts) -> Result<Concern, Refusal> {
        Ok(Concern::Read)
    }

    fn deliveries(
        &self,
        _head: &http::request::Parts,
        _body: &[u8],
    ) -> Result<Vec<Delivery>, Refusal> {
        Ok(vec![Delivery::new(Key::new("webhook", "", &["1"]))])
    }
}

#[tokio::test]
async fn a_sender_that_reads_only_the_status_gets_its_ack_instead() {
    let (router, runs) = router();
    let channel = ByPath::new().at("/", Webhook(Terms::webhook("webhook")));
    let layer = IdempotencyLayer::new(MemoryStore::new(), channel);
    let app = router.layer(CompressionLayer::new()).layer(layer);
    send(&app, message(GZIP)).await;
    let ack = send(&app, message(NOTHING)).await;
    assert_eq!((ack.status, ack.text()), (StatusCode::OK, String::new()));
    assert_eq!(runs.count(), 1);
}
