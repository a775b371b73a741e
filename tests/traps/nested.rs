//! A layer that is mounted twice.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_idempotency::IdempotencyLayer;
use tower_idempotency::channel::{IdempotencyKey, Scope};
use tower_idempotency::store::MemoryStore;

use crate::log::Log;
use crate::said;

type Twice = IdempotencyLayer<MemoryStore, IdempotencyKey>;

fn layer(store: &MemoryStore) -> Twice {
    let channel = IdempotencyKey::scoped_by(Scope::header("x-user"));
    IdempotencyLayer::new(store.clone(), channel)
}

/// Posts one message twice through two layers. Gives how often it was handled.
async fn post_twice(outer: &Twice, inner: &Twice) -> u64 {
    let runs = Arc::new(AtomicU64::new(0));
    for replayed in [false, true] {
        let runs = Arc::clone(&runs);
        let handler = service_fn(move |_| {
            runs.fetch_add(1, Ordering::SeqCst);
            async { Ok::<_, Infallible>(Response::new(Full::from("done"))) }
        });
        let request = Request::post("/")
            .header("x-user", "alice")
            .header("idempotency-key", "k")
            .body(Full::<Bytes>::from("hello"));
        let app = outer.layer(inner.layer(handler));
        let began = Instant::now();
        let answer = app.oneshot(request.unwrap()).await.unwrap();
        // It did not wait for itself.
        assert_eq!(began.elapsed().as_secs(), 0);
        assert_eq!(answer.status(), 200);
        assert_eq!(
            answer.headers().contains_key("idempotency-replayed"),
            replayed
        );
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(&body[..], b"done");
    }
    runs.load(Ordering::SeqCst)
}

/// Field case B131.
#[tokio::test(start_paused = true)]
async fn the_inner_one_lets_pass_what_the_outer_one_has_claimed_and_says_so_once() {
    Log::begin();
    let store = MemoryStore::new();
    let (outer, inner) = (layer(&store), layer(&store));
    assert_eq!(post_twice(&outer, &inner).await, 1);
    assert_eq!((outer.counts().runs, outer.counts().replayed), (1, 1));
    assert_eq!((inner.counts().runs, inner.counts().nested), (0, 1));
    let other = request("other");
    let handler =
        service_fn(|_| async { Ok::<_, Infallible>(Response::new(Full::<Bytes>::default())) });
    let mut app = outer.layer(inner.layer(handler));
    app.call(other).await.unwrap();
    assert_eq!(inner.counts().nested, 2);
    assert_eq!(said("a layer is mounted within another"), 1);
}

fn request(key: &'static str) -> Request<Full<Bytes>> {
    let request = Request::post("/").header("x-user", "alice");
    let request = request.header("idempotency-key", key);
    request.body(Full::default()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_same_one_around_itself_lets_pass_as_well() {
    let layer = layer(&MemoryStore::new());
    assert_eq!(post_twice(&layer, &layer).await, 1);
    assert_eq!((layer.counts().runs, layer.counts().nested), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn layers_for_different_messages_both_protect() {
    Log::begin();
    let store = MemoryStore::new();
    let outer = layer(&store);
    let channel = IdempotencyKey::scoped_by(Scope::header("x-user")).named("other");
    let inner = IdempotencyLayer::new(store, channel);
    assert_eq!(post_twice(&outer, &inner).await, 1);
    assert_eq!((outer.counts().runs, inner.counts().runs), (1, 1));
    assert_eq!(said("a layer is mounted within another"), 0);
}
