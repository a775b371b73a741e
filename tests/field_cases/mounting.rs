//! How the layer is set up and mounted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http_body_util::BodyExt;
use tokio::time::sleep;
use tower::retry::RetryLayer;
use tower::{ServiceBuilder, ServiceExt};
use tower_http::timeout::TimeoutLayer;
use tower_idempotency::channel::{Channel, HeaderId, IdempotencyKey, JsonPath, Scope};
use tower_idempotency::store::{MemoryStore, Sight, Store};
use tower_idempotency::{Claimed, IdempotencyLayer, Keep, Key, Others};

use crate::app::{App, JSON, keyed, post as message};

/// A route whose handler tells the ids that it claimed, and counts its runs.
fn route(runs: &Arc<AtomicU64>) -> Router {
    let runs = Arc::clone(runs);
    let handle = async move |request: Request| {
        runs.fetch_add(1, Ordering::SeqCst);
        let claimed = request.extensions().get::<Claimed>().cloned();
        let ids = claimed.iter().flat_map(Claimed::messages);
        let ids: Vec<&str> = ids.map(|message| message.key().id()).collect();
        ids.join(" ").into_response()
    };
    Router::new().route("/messages", post(handle))
}

async fn ask(app: &Router, request: crate::app::Sent) -> (u16, bool, String) {
    let answer: Response = app.clone().oneshot(request.map(Body::new)).await.unwrap();
    let is_replayed = answer.headers().contains_key("idempotency-replayed");
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (
        status,
        is_replayed,
        String::from_utf8(body.to_vec()).unwrap(),
    )
}

fn client(store: &MemoryStore) -> IdempotencyLayer<MemoryStore, IdempotencyKey> {
    IdempotencyLayer::new(store.clone(), IdempotencyKey::unscoped())
}

/// A request that passes the same layer twice, on the outer router and on a nested one, makes one
/// claim and does not wait for itself.
///
/// Field case B131.
#[tokio::test(start_paused = true)]
async fn a_layer_that_is_mounted_twice_claims_once() {
    let store = MemoryStore::new();
    let runs = Arc::default();
    // Two layers on one store, as two configurations make them, and one layer twice.
    let (outer, inner) = (client(&store), client(&store));
    for layers in [[&outer, &inner], [&outer, &outer]] {
        let key = format!("{:p} {:p}", layers[0], layers[1]);
        let app = Router::new()
            .nest("/api", route(&runs).layer(layers[1].clone()))
            .layer(layers[0].clone());
        let send = || message("/api/messages", &[("idempotency-key", &key)], "yes");
        let first = ask(&app, send()).await;
        assert_eq!(first, (200, false, key.clone()));
        assert_eq!(ask(&app, send()).await, (200, true, key));
    }
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    assert_eq!((outer.counts().waited, inner.counts().waited), (0, 0));
    assert_eq!((inner.counts().runs, inner.counts().without_key), (0, 0));
}

/// The same with a batch that is passed whole, of which one message is done: the inner mount does
/// not take the outer one's word for the rest as its own.
///
/// Field case B131.
#[tokio::test(start_paused = true)]
async fn a_batch_passes_the_same_layer_twice() {
    let hook = || JsonPath::new("hook", "$[*]").unwrap().unverified();
    let layer = IdempotencyLayer::new(MemoryStore::new(), hook()).others(Others::PassWhole);
    let runs = Arc::default();
    let app = route(&runs).layer(layer.clone()).layer(layer.clone());
    let send = |body: &'static str| ask(&app, message("/messages", JSON, body));
    assert_eq!(send("[1]").await, (200, false, "1".into()));
    assert_eq!(send("[1,2]").await, (200, false, "2".into()));
    assert_eq!(send("[1,2]").await.0, 200);
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

/// Two channels over one route: each claims its own key, and a repeat by either is one.
///
/// Field case B131.
#[tokio::test(start_paused = true)]
async fn two_channels_over_one_route_do_not_meet() {
    let store = MemoryStore::new();
    let by_id = HeaderId::new("deliveries", "x-delivery").unverified();
    let by_id = IdempotencyLayer::new(store.clone(), by_id);
    let runs = Arc::default();
    let app = route(&runs).layer(by_id).layer(client(&store));
    let send = |key: &'static str, delivery: &'static str| {
        let headers = [("idempotency-key", key), ("x-delivery", delivery)];
        ask(&app, message("/messages", &headers, "yes"))
    };
    assert_eq!(send("k", "d").await, (200, false, "d".into()));
    assert!(send("k", "d").await.1);
    assert!(send("l", "d").await.1);
    assert_eq!(send("l", "e").await, (200, true, "d".into()));
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

/// Tries once more after a 503.
#[derive(Clone)]
struct OnceMore(bool);

impl<Q: Clone, E> tower::retry::Policy<Q, Response, E> for OnceMore {
    type Future = std::future::Ready<()>;

    fn retry(&mut self, _: &mut Q, answer: &mut Result<Response, E>) -> Option<Self::Future> {
        let failed = answer.as_ref().is_ok_and(|answer| answer.status() == 503);
        let again = failed && std::mem::replace(&mut self.0, false);
        again.then(|| std::future::ready(()))
    }

    fn clone_request(&mut self, request: &Q) -> Option<Q> {
        Some(request.clone())
    }
}

/// A retry behind the layer calls the handler twice in one run, under one claim.
///
/// Field case B131.
#[tokio::test]
async fn a_retry_behind_the_layer_is_within_one_claim() {
    let store = MemoryStore::new();
    let layer = client(&store);
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    let handler = tower::service_fn(move |(): ()| {
        let call = counted.fetch_add(1, Ordering::SeqCst);
        let status = if call == 0 {
            StatusCode::SERVICE_UNAVAILABLE
        } else {
            StatusCode::OK
        };
        async move { Ok::<_, std::convert::Infallible>(status.into_response()) }
    });
    let retrying = ServiceBuilder::new()
        .map_request(|_: Request| ())
        .layer(RetryLayer::new(OnceMore(true)))
        .service(handler);
    let app = Router::new()
        .route_service("/messages", retrying)
        .layer(layer.clone());
    assert_eq!(ask(&app, keyed("k", "yes")).await.0, 200);
    assert!(ask(&app, keyed("k", "yes")).await.1);
    assert_eq!((calls.load(Ordering::SeqCst), layer.counts().runs), (2, 1));
}

/// A time limit behind the layer that answers with a failure frees the key; one that answers with a
/// success makes the cut run count as done.
///
/// Field case B128.
#[tokio::test(start_paused = true)]
async fn a_time_limit_that_answers_with_a_success_is_taken_at_its_word() {
    for (status, runs_again) in [
        (StatusCode::SERVICE_UNAVAILABLE, true),
        (StatusCode::OK, false),
    ] {
        let runs = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&runs);
        let slow = async move || {
            counted.fetch_add(1, Ordering::SeqCst);
            sleep(Duration::from_secs(3)).await;
        };
        let limit = TimeoutLayer::with_status_code(status, Duration::from_secs(1));
        let app = Router::new().route("/messages", post(slow)).layer(limit);
        let app = app.layer(client(&MemoryStore::new()));
        for _ in 0..2 {
            assert_eq!(ask(&app, keyed("k", "yes")).await.0, status.as_u16());
        }
        assert_eq!(runs.load(Ordering::SeqCst) == 2, runs_again, "{status}");
    }
}

/// Two channels on one store handle keep each its own settings; the handle holds none.
///
/// Field case B130.
#[tokio::test(start_paused = true)]
async fn channels_on_one_store_keep_their_own_settings() {
    let store = MemoryStore::new();
    let hook = JsonPath::new("hook", "$.id").unwrap().unverified();
    let short = IdempotencyLayer::new(store.clone(), hook)
        .keep(Keep::For(Duration::from_mins(1)))
        .lease(Duration::from_secs(3))
        .max_response(3);
    let long = client(&store).keep(Keep::For(Duration::from_hours(1)));
    let app = App::quick();
    let hooked = || message("/", JSON, r#"{"id":1}"#);
    for _ in 0..2 {
        app.send(&short, hooked()).await;
        app.send(&long, keyed("1", "yes")).await;
    }
    assert_eq!(app.runs(), 2);
    assert_eq!((short.counts().acked, long.counts().replayed), (1, 1));
    sleep(Duration::from_mins(2)).await;
    app.send(&short, hooked()).await;
    assert!(app.send(&long, keyed("1", "yes")).await.is_replayed());
    assert_eq!(app.runs(), 3);
    sleep(Duration::from_hours(1)).await;
    assert!(!app.send(&long, keyed("1", "yes")).await.is_replayed());
}

/// What a scope is made of is said once, and the quick start says it: a key is found under its
/// scope and nowhere else.
///
/// Field case B44.
#[tokio::test]
async fn the_quick_start_is_scoped() {
    let store = MemoryStore::new();
    let channel = IdempotencyKey::scoped_by(Scope::header("x-user"));
    assert_eq!(channel.all_terms().len(), 1);
    let layer = IdempotencyLayer::new(store.clone(), channel);
    let request = message("/", &[("idempotency-key", "1"), ("x-user", "ann")], "yes");
    App::quick().send(&layer, request).await;
    let keys = [Key::new("web", "ann", &["1"]), Key::new("web", "", &["1"])];
    let sights = store.look(&keys).await.unwrap();
    assert!(matches!(sights.as_slice(), [Sight::Done(_), Sight::Absent]));
}
