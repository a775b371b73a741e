//! The messages that the stores are given.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use tower_idempotency::store::{Claim, Nonce, Settled, Store, Verdict, Wanted};
use tower_idempotency::{Keep, Key, Record, Whole};

/// Runs a new message through a store, from its claim to its record.
pub(crate) async fn handle(store: &impl Store, id: &str, record: Arc<Record>) {
    let day = Keep::For(Duration::from_hours(24));
    handle_keeping(store, id, record, day).await;
}

/// [`handle`], with a retention.
pub(crate) async fn handle_keeping(store: &impl Store, id: &str, record: Arc<Record>, keep: Keep) {
    let lease = match ask(store, id).await {
        Verdict::Run(lease) => lease,
        other => panic!("a new key is not run: {other:?}"),
    };
    let end = lease.record(record, keep);
    assert_eq!(store.settle(&[end]).await.unwrap(), [Settled::Applied]);
}

/// Asks for a message that is done.
pub(crate) async fn replay(store: &impl Store, id: &str) {
    match ask(store, id).await {
        Verdict::Replay(_) => {}
        other => panic!("a done key is not replayed: {other:?}"),
    }
}

pub(crate) async fn ask(store: &impl Store, id: &str) -> Verdict {
    let key = Key::new("whatsapp", "1065", &[id]);
    let lease = Duration::from_secs(30);
    let claim = Claim::new(Nonce::random(), lease, vec![Wanted::new(key)]);
    store.claim(&claim).await.unwrap().pop().unwrap()
}

/// One of these ids.
pub(crate) fn pick(ids: &[String]) -> &str {
    &ids[rand::random_range(0..ids.len())]
}

/// A new id, as WhatsApp's: a common beginning, then what differs.
pub(crate) fn id() -> String {
    format!("wamid.HBgM{:019}", rand::random::<u64>() >> 1)
}

/// A response of 1 KiB that cannot be compressed.
pub(crate) fn bytes() -> Vec<u8> {
    (0..1024).map(|_| rand::random()).collect()
}

/// A record of such a response.
pub(crate) fn record() -> Arc<Record> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    let body = Whole {
        frames: vec![Bytes::from(bytes())],
        trailers: None,
        sized: true,
    };
    Arc::new(Record::new(StatusCode::OK, headers, body))
}
