//! Proves what becomes of a request with several messages: each is claimed by itself, what can
//! run runs, and a success says that all of them are done.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(
    clippy::disallowed_methods,
    reason = "a test owns the tasks that it spawns"
)]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower::util::BoxCloneService;
use tower::{BoxError, Layer, ServiceExt, service_fn};
use tower_idempotency::channel::{Channel, Concern, Reason, Refusal, Terms};
use tower_idempotency::store::MemoryStore;
use tower_idempotency::{
    Claimed, Delivery, Disposition, IdempotencyLayer, Key, Others, RequestBody, ResponseBody,
};

/// A sender whose body is a list of ids. What is said of an id twice is one message.
struct Ids(Terms);

impl Channel for Ids {
    fn terms(&self, _head: &Parts) -> &Terms {
        &self.0
    }

    fn concern(&self, _head: &Parts) -> Result<Concern, Refusal> {
        Ok(Concern::Read)
    }

    fn deliveries(&self, _head: &Parts, body: &[u8]) -> Result<Vec<Delivery>, Refusal> {
        let ids: Vec<String> = serde_json::from_slice(body)
            .map_err(|e| Refusal::new(Reason::MalformedBody, e.to_string()))?;
        Ok(ids.iter().map(|id| Delivery::new(key(id))).collect())
    }

    fn without(&self, _head: &Parts, body: &Bytes, gone: &[&Key]) -> Option<Bytes> {
        let ids: Vec<String> = serde_json::from_slice(body).ok()?;
        let rest = ids.iter().filter(|id| !gone.contains(&&key(id)));
        Some(json!(rest.collect::<Vec<_>>()).to_string().into())
    }
}

fn key(id: &str) -> Key {
    Key::new("ids", "", &[id])
}

type Service = BoxCloneService<Request<Full<Bytes>>, Response<ResponseBody<Full<Bytes>>>, BoxError>;

/// Notes what it is given and answers as the first id says: `slow-…` takes 2 s, `fail-…` is 500,
/// and ids that begin with `back` are given back one by one.
struct World {
    layer: IdempotencyLayer<MemoryStore, Ids>,
    service: Service,
    seen: Arc<Mutex<Vec<Vec<String>>>>,
}

fn world(others: Others) -> World {
    let mut terms = Terms::webhook("ids");
    terms.wait = Duration::from_secs(1);
    let layer = IdempotencyLayer::new(MemoryStore::new(), Ids(terms)).others(others);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let handler = service_fn(move |request: Request<RequestBody<Full<Bytes>>>| {
        let noted = Arc::clone(&noted);
        async move { Ok::<_, BoxError>(handle(request, &noted).await) }
    });
    let service = BoxCloneService::new(layer.layer(handler));
    World {
        layer,
        service,
        seen,
    }
}

async fn handle(
    request: Request<RequestBody<Full<Bytes>>>,
    noted: &Mutex<Vec<Vec<String>>>,
) -> Response<Full<Bytes>> {
    let claimed = request.extensions().get::<Claimed>().unwrap().clone();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let ids: Vec<String> = serde_json::from_slice(&body).unwrap();
    noted.lock().unwrap().push(ids.clone());
    for message in claimed.messages() {
        match message.key().id() {
            id if id.starts_with("back") => {
                assert!(claimed.settle(message.key(), Disposition::Release));
            }
            id if id.starts_with("done") => {
                assert!(claimed.settle(message.key(), Disposition::Record));
            }
            _ => {}
        }
    }
    assert!(!claimed.settle(&key("unknown"), Disposition::Record));
    if ids.iter().any(|id| id.starts_with("slow")) {
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    let failed = ids.iter().any(|id| id.starts_with("fail"));
    let mut response = Response::new(Full::from(format!("{ids:?}")));
    *response.status_mut() = if failed {
        StatusCode::INTERNAL_SERVER_ERROR
    } else {
        StatusCode::OK
    };
    response
}

impl World {
    fn post(
        &self,
        ids: &[&str],
    ) -> impl Future<Output = Response<ResponseBody<Full<Bytes>>>> + use<> {
        let body = json!(ids).to_string();
        let request = Request::post("/").body(Full::from(body)).unwrap();
        let answer = self.service.clone().oneshot(request);
        async { answer.await.unwrap() }
    }

    /// What the handler was given, each time.
    fn seen(&self) -> Value {
        json!(*self.seen.lock().unwrap())
    }
}

#[tokio::test]
async fn what_is_done_is_cut_out_of_the_body() {
    let world = world(Others::CutOut);
    world.post(&["a", "b"]).await;
    assert_eq!(world.post(&["b", "c", "a"]).await.status(), 200);
    assert_eq!(world.seen(), json!([["a", "b"], ["c"]]));
}

#[tokio::test]
async fn the_body_is_passed_whole_where_that_was_chosen() {
    let world = world(Others::PassWhole);
    world.post(&["a"]).await;
    world.post(&["a", "b"]).await;
    assert_eq!(world.seen(), json!([["a"], ["a", "b"]]));
}

/// Field case P41.
#[tokio::test]
async fn a_batch_that_is_done_is_replayed_and_a_regrouped_one_is_acked() {
    let world = world(Others::CutOut);
    let first = world.post(&["a", "b"]).await;
    let first = first.into_body().collect().await.unwrap().to_bytes();
    let same = world.post(&["a", "b"]).await;
    assert!(same.headers().contains_key("idempotency-replayed"));
    assert_eq!(same.into_body().collect().await.unwrap().to_bytes(), first);
    world.post(&["c"]).await;
    let regrouped = world.post(&["b", "c"]).await;
    assert_eq!(regrouped.status(), 200);
    assert_eq!(
        regrouped.into_body().collect().await.unwrap().to_bytes(),
        ""
    );
    assert_eq!(world.seen(), json!([["a", "b"], ["c"]]));
}

#[tokio::test(start_paused = true)]
async fn one_key_twice_in_a_request_is_one_message_and_never_waits_for_itself() {
    let world = world(Others::CutOut);
    let began = tokio::time::Instant::now();
    assert_eq!(world.post(&["a", "a"]).await.status(), 200);
    assert_eq!(world.post(&["a", "a"]).await.status(), 200);
    assert!(began.elapsed() < Duration::from_millis(1));
    assert_eq!(world.seen(), json!([["a", "a"]]));
    assert_eq!(world.layer.counts().recorded, 1);
}

#[tokio::test(start_paused = true)]
async fn fresh_ones_run_at_once_while_another_runs_elsewhere_and_the_answer_is_no_success() {
    let world = world(Others::CutOut);
    let service = world.service.clone();
    let slow = Request::post("/").body(Full::from("[\"slow-a\"]")).unwrap();
    let elsewhere = tokio::spawn(service.oneshot(slow));
    tokio::time::sleep(Duration::from_millis(1)).await;
    let began = tokio::time::Instant::now();
    let mixed = world.post(&["slow-a", "b"]).await;
    assert_eq!(mixed.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(mixed.headers().contains_key("retry-after"));
    assert!(began.elapsed() < Duration::from_secs(3));
    elsewhere.await.unwrap().unwrap();
    // Both are done now, without another run.
    assert_eq!(world.post(&["slow-a", "b"]).await.status(), 200);
    let runs = world.seen();
    assert_eq!(runs.as_array().unwrap().len(), 2, "{runs}");
    assert_eq!(world.layer.counts().recorded, 2);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_repeat_waits_a_little_and_is_then_told_to_come_again() {
    let world = world(Others::CutOut);
    let slow = Request::post("/").body(Full::from("[\"slow-a\"]")).unwrap();
    let elsewhere = tokio::spawn(world.service.clone().oneshot(slow));
    tokio::time::sleep(Duration::from_millis(1)).await;
    let repeat = world.post(&["slow-a"]).await;
    assert_eq!(repeat.status(), StatusCode::SERVICE_UNAVAILABLE);
    let answer = elsewhere.await.unwrap().unwrap();
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn a_failed_batch_comes_back_whole_except_what_the_handler_settled() {
    let world = world(Others::CutOut);
    let ids = ["done-a", "fail-b", "done-c"];
    assert_eq!(world.post(&ids).await.status(), 500);
    assert_eq!(world.post(&ids).await.status(), 500);
    assert_eq!(world.seen(), json!([ids, ["fail-b"]]));
    let done = world.post(&["done-a", "done-c"]).await;
    assert_eq!(done.status(), 200);
    assert_eq!(done.into_body().collect().await.unwrap().to_bytes(), "");
}

#[tokio::test]
async fn a_success_with_a_message_given_back_is_no_success_for_the_sender() {
    let world = world(Others::CutOut);
    let answer = world.post(&["a", "back-b"]).await;
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    world.post(&["a", "back-b"]).await;
    assert_eq!(world.seen(), json!([["a", "back-b"], ["back-b"]]));
}

/// Field case B61.
#[tokio::test(start_paused = true)]
async fn overlapping_batches_at_once_run_each_message_once() {
    let world = world(Others::CutOut);
    let posts = (0..40).map(|n| {
        let ids: Vec<String> = (n..n + 5).map(|id| format!("slow-{}", id % 20)).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        world.post(&ids)
    });
    futures_util::future::join_all(posts).await;
    let seen = world.seen.lock().unwrap().concat();
    let once: BTreeSet<_> = seen.iter().collect();
    assert_eq!((seen.len(), once.len()), (20, 20));
}
