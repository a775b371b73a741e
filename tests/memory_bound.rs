//! What the memory store does where its bound is reached, and that rows leave when their time ends.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use tower::{Layer, Service, service_fn};
use tower_idempotency::channel::IdempotencyKey;
use tower_idempotency::store::{Claim, MemoryStore, Nonce, Sight, Store, Verdict, Wanted};
use tower_idempotency::{Error, IdempotencyLayer, Keep, Key, Record, Whole};

const MINUTE: Duration = Duration::from_mins(1);

fn key(id: u32) -> Key {
    Key::new("web", "", &[id.to_string()])
}

async fn claim(store: &MemoryStore, ids: &[u32]) -> Result<Vec<Verdict>, Error> {
    let wanted = ids.iter().map(|id| Wanted::new(key(*id))).collect();
    let claim = Claim::new(Nonce::random(), MINUTE, wanted);
    store.claim(&claim).await
}

async fn finish(store: &MemoryStore, id: u32, body: &'static [u8], keep: Keep) {
    let verdicts = claim(store, &[id]).await.unwrap();
    let Some(Verdict::Run(lease)) = verdicts.into_iter().next() else {
        panic!("{id} is not fresh");
    };
    let whole = Whole {
        frames: vec![body.into()],
        ..Whole::default()
    };
    let record = Record::new(StatusCode::OK, HeaderMap::new(), whole);
    let settled = store.settle(&[lease.record(Arc::new(record), keep)]).await;
    settled.unwrap();
}

async fn sees_nothing(store: &MemoryStore, id: u32) -> bool {
    let sights = store.look(&[key(id)]).await.unwrap();
    matches!(sights.as_slice(), [Sight::Absent])
}

/// Field cases B68, P09.
#[tokio::test(start_paused = true)]
async fn a_full_store_refuses_new_keys_and_counts_them() {
    let store = MemoryStore::bounded(2, usize::MAX);
    finish(&store, 1, b"", Keep::For(MINUTE)).await;
    claim(&store, &[2]).await.unwrap();
    assert!(claim(&store, &[3]).await.unwrap_err().is_retryable());
    assert_eq!((store.refused(), store.keys()), (1, 2));
    assert!(sees_nothing(&store, 3).await);
}

/// Field case B68.
#[tokio::test(start_paused = true)]
async fn a_full_store_still_answers_repeats_of_done_and_running_keys() {
    let store = MemoryStore::bounded(2, usize::MAX);
    finish(&store, 1, b"", Keep::For(MINUTE)).await;
    claim(&store, &[2]).await.unwrap();
    let verdicts = claim(&store, &[1, 2]).await.unwrap();
    assert!(matches!(
        verdicts.as_slice(),
        [Verdict::Replay(_), Verdict::Running { .. }]
    ));
}

/// Field case P29.
#[tokio::test(start_paused = true)]
async fn a_full_store_gives_room_once_a_retention_has_ended() {
    let store = MemoryStore::bounded(300, usize::MAX);
    for id in 0..300 {
        finish(&store, id, b"", Keep::For(MINUTE)).await;
    }
    claim(&store, &[999]).await.unwrap_err();
    tokio::time::advance(MINUTE).await;
    for id in 1000..1300 {
        claim(&store, &[id]).await.unwrap();
    }
    assert_eq!(store.keys(), 300);
}

/// Field case B68.
#[tokio::test(start_paused = true)]
async fn a_full_store_never_forgets_a_running_key_even_one_that_lapsed() {
    let store = MemoryStore::bounded(1, usize::MAX);
    claim(&store, &[1]).await.unwrap();
    tokio::time::advance(MINUTE * 60).await;
    claim(&store, &[2]).await.unwrap_err();
    let verdicts = claim(&store, &[1]).await.unwrap();
    assert!(matches!(verdicts.as_slice(), [Verdict::Run(lease)] if lease.attempt() == 2));
}

#[tokio::test(start_paused = true)]
async fn a_batch_without_room_for_all_its_new_keys_claims_none_of_them() {
    let store = MemoryStore::bounded(2, usize::MAX);
    claim(&store, &[1, 2, 3]).await.unwrap_err();
    assert_eq!(store.keys(), 0);
    claim(&store, &[1, 2]).await.unwrap();
}

/// Field case P09.
#[tokio::test(start_paused = true)]
async fn records_are_bounded_in_bytes() {
    let store = MemoryStore::bounded(usize::MAX, 10);
    finish(&store, 1, b"123456789", Keep::For(MINUTE)).await;
    finish(&store, 2, b"123456789", Keep::For(MINUTE)).await;
    assert_eq!(store.bytes(), 18);
    claim(&store, &[3]).await.unwrap_err();
    tokio::time::advance(MINUTE).await;
    claim(&store, &[3]).await.unwrap();
    assert_eq!(store.bytes(), 0);
}

#[tokio::test]
async fn a_record_holds_its_own_bytes_and_not_the_buffer_that_they_came_in() {
    let buffer = Bytes::from(vec![b'1'; 1 << 20]);
    let (body, value) = (buffer.slice(..10), buffer.slice(10..20));
    let service = service_fn(move |_| {
        let value = HeaderValue::from_maybe_shared(value.clone()).unwrap();
        let response = Response::builder().header("x-a", value);
        let response = response.body(Full::new(body.clone())).unwrap();
        async { Ok::<_, Infallible>(response) }
    });
    let layer = IdempotencyLayer::new(MemoryStore::new(), IdempotencyKey::unscoped());
    let mut service = layer.layer(service);
    let request = || {
        let request = Request::post("/").header("idempotency-key", "k");
        request.body(Full::<Bytes>::default()).unwrap()
    };
    service.call(request()).await.unwrap();
    let replay = service.call(request()).await.unwrap();
    assert_eq!(replay.headers()["x-a"], "1111111111");
    drop((service, replay));
    assert!(buffer.is_unique());
    drop(layer);
}

#[tokio::test(start_paused = true)]
async fn a_record_kept_for_ever_is_kept() {
    let store = MemoryStore::new();
    finish(&store, 1, b"", Keep::For(Duration::MAX)).await;
    tokio::time::advance(Duration::from_hours(24 * 365 * 10)).await;
    assert_eq!(store.sweep(10).await.unwrap(), 0);
    assert!(!sees_nothing(&store, 1).await);
}

#[tokio::test(start_paused = true)]
async fn an_ended_row_is_not_seen_even_before_it_is_cleared() {
    let store = MemoryStore::new();
    finish(&store, 1, b"", Keep::For(MINUTE)).await;
    tokio::time::advance(MINUTE).await;
    assert!(sees_nothing(&store, 1).await);
    assert_eq!(store.keys(), 1);
    finish(&store, 1, b"", Keep::For(MINUTE)).await;
    assert_eq!(store.keys(), 1);
}

/// Field cases B66, P29.
#[tokio::test(start_paused = true)]
async fn claims_clear_a_few_ended_rows_each_and_keep_up() {
    let store = MemoryStore::new();
    for id in 0..10_000 {
        finish(&store, id, b"", Keep::For(MINUTE)).await;
    }
    tokio::time::advance(MINUTE).await;
    let before = store.keys();
    claim(&store, &[10_000]).await.unwrap();
    assert!(before - store.keys() < 4, "one claim cleared many rows");
    for id in 10_001..20_000 {
        claim(&store, &[id]).await.unwrap();
    }
    assert_eq!(store.keys(), 10_000);
}
