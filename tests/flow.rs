//! Proves the way of a request in line: first and repeat, outcomes, callers that leave.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(
    clippy::disallowed_methods,
    reason = "a test owns the tasks that it spawns"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use tower::ServiceExt;
use tower_idempotency::channel::{IdempotencyKey, Scope};
use tower_idempotency::store::MemoryStore;
use tower_idempotency::{Claimed, Disposition, IdempotencyLayer};

type Layer = IdempotencyLayer<MemoryStore, IdempotencyKey>;

fn layer() -> Layer {
    let channel = IdempotencyKey::scoped_by(Scope::header("x-user"));
    IdempotencyLayer::new(MemoryStore::new(), channel)
}

/// Counts its runs and answers as `x-answer` says.
#[derive(Clone, Default)]
struct Handler {
    runs: Arc<AtomicU64>,
}

async fn handle(State(handler): State<Handler>, headers: HeaderMap, body: String) -> Response {
    let run = handler.runs.fetch_add(1, Ordering::SeqCst) + 1;
    let told = |name| headers.get(name).map_or("", |v| v.to_str().unwrap());
    if let Ok(millis) = told("x-delay").parse() {
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
    let status: u16 = told("x-answer").parse().unwrap_or(201);
    let status = StatusCode::from_u16(status).unwrap();
    assert_ne!(told("x-panic"), "yes", "asked to panic");
    let mut response = (status, [("x-run", run.to_string())], body).into_response();
    match told("x-say") {
        "release" => drop(response.extensions_mut().insert(Disposition::Release)),
        "record" => drop(response.extensions_mut().insert(Disposition::Record)),
        _ => {}
    }
    response
}

fn app(layer: &Layer) -> (Router, Handler) {
    let handler = Handler::default();
    let route = post(handle).get(handle).put(handle);
    let router = Router::new()
        .route("/messages", route.clone())
        .route("/other", route);
    (
        router.layer(layer.clone()).with_state(handler.clone()),
        handler,
    )
}

fn send(key: &str, headers: &[(&str, &str)]) -> Request {
    let mut request = Request::post("/messages").header("x-user", "alice");
    if !key.is_empty() {
        request = request.header("idempotency-key", key);
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::from("{\"text\":\"yes\"}")).unwrap()
}

async fn text(response: Response) -> String {
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}

fn is_replayed(response: &Response) -> bool {
    response.headers().contains_key("idempotency-replayed")
}

/// Field case P82.
#[tokio::test]
async fn a_repeat_gets_the_recorded_response_and_nothing_runs() {
    let (app, handler) = app(&layer());
    let first = app.clone().oneshot(send("k", &[])).await.unwrap();
    let second = app.clone().oneshot(send("\"k\"", &[])).await.unwrap();
    assert!(!is_replayed(&first) && is_replayed(&second));
    assert_eq!(first.status(), second.status());
    let mut headers = second.headers().clone();
    headers.remove("idempotency-replayed");
    assert_eq!(&headers, first.headers());
    assert_eq!(text(first).await, text(second).await);
    assert_eq!(handler.runs.load(Ordering::SeqCst), 1);
}

/// Field case P04.
#[tokio::test]
async fn without_a_key_and_with_a_safe_method_everything_passes() {
    let layer = layer();
    let (app, handler) = app(&layer);
    for request in [send("", &[]), send("", &[])] {
        assert_eq!(app.clone().oneshot(request).await.unwrap().status(), 201);
    }
    for _ in 0..2 {
        let mut request = send("k", &[]);
        *request.method_mut() = Method::GET;
        assert_eq!(app.clone().oneshot(request).await.unwrap().status(), 201);
    }
    assert_eq!(handler.runs.load(Ordering::SeqCst), 4);
    assert_eq!(layer.counts().without_key, 2);
}

/// Field case B01.
#[tokio::test(start_paused = true)]
async fn many_at_once_make_one_run() {
    let layer = layer();
    let (app, handler) = app(&layer);
    let one = |_| app.clone().oneshot(send("k", &[("x-delay", "1000")]));
    let all = futures_util::future::join_all((0..64).map(one)).await;
    assert!(
        all.iter()
            .all(|answer| answer.as_ref().unwrap().status() == 201)
    );
    assert_eq!(handler.runs.load(Ordering::SeqCst), 1);
    assert_eq!((layer.counts().runs, layer.counts().replayed), (1, 63));
}

#[tokio::test(start_paused = true)]
async fn a_repeat_waits_at_most_its_time_and_is_told_when_to_come_again() {
    let (app, _) = app(&layer());
    let first = tokio::spawn(app.clone().oneshot(send("k", &[("x-delay", "20000")])));
    tokio::time::sleep(Duration::from_millis(1)).await;
    let began = tokio::time::Instant::now();
    let repeat = app.clone().oneshot(send("k", &[])).await.unwrap();
    assert_eq!(repeat.status(), StatusCode::CONFLICT);
    assert!(
        began.elapsed() >= Duration::from_secs(9) && began.elapsed() <= Duration::from_secs(10)
    );
    let after: u64 = repeat.headers()["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=30).contains(&after), "{after}");
    assert!(text(repeat).await.contains("still-running"));
    assert_eq!(first.await.unwrap().unwrap().status(), 201);
}

/// Field cases B46, P03, P63, P69, P73, P78.
#[tokio::test]
async fn another_request_under_the_same_key_is_refused_with_the_part_that_differs() {
    let (app, handler) = app(&layer());
    app.clone().oneshot(send("k", &[])).await.unwrap();
    let mut other = send("k", &[]);
    *other.uri_mut() = "/other".parse().unwrap();
    let mut query = send("k", &[]);
    *query.uri_mut() = "/messages?x=1".parse().unwrap();
    let mut body = send("k", &[]);
    *body.body_mut() = Body::from("{\"text\":\"no\"}");
    let mut method = send("k", &[]);
    *method.method_mut() = Method::PUT;
    for (request, part) in [
        (other, "path"),
        (query, "query"),
        (body, "body"),
        (method, "method"),
    ] {
        let answer = app.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY);
        let text = text(answer).await;
        assert!(text.contains(&format!("The {part} differs")), "{text}");
    }
    assert_eq!(handler.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn what_is_no_success_runs_again() {
    for status in ["400", "404", "408", "425", "429", "500", "503"] {
        let layer = layer();
        let (app, handler) = app(&layer);
        for run in 1..=2 {
            let answer = app
                .clone()
                .oneshot(send("k", &[("x-answer", status)]))
                .await
                .unwrap();
            assert_eq!(answer.status().as_str(), status);
            assert_eq!(handler.runs.load(Ordering::SeqCst), run);
        }
        assert_eq!(layer.counts().released, 2);
    }
}

#[tokio::test]
async fn the_handler_decides_by_a_disposition() {
    let (app, handler) = app(&layer());
    for _ in 0..2 {
        let answer = app
            .clone()
            .oneshot(send("a", &[("x-say", "release")]))
            .await
            .unwrap();
        assert_eq!(answer.status(), 201);
    }
    assert_eq!(handler.runs.load(Ordering::SeqCst), 2);
    let failed = [("x-say", "record"), ("x-answer", "500")];
    for _ in 0..2 {
        let answer = app.clone().oneshot(send("b", &failed)).await.unwrap();
        assert_eq!(answer.status(), 500);
    }
    assert_eq!(handler.runs.load(Ordering::SeqCst), 3);
}

/// Field case P15.
#[tokio::test]
async fn a_panic_reaches_the_caller_and_frees_the_key() {
    let layer = layer();
    let (app, _) = app(&layer);
    let panicking = tokio::spawn(app.clone().oneshot(send("k", &[("x-panic", "yes")])));
    assert!(panicking.await.unwrap_err().is_panic());
    let again = app.clone().oneshot(send("k", &[])).await.unwrap();
    assert_eq!(again.status(), 201);
    assert_eq!(layer.counts().released, 1);
}

/// Field cases B82, P07, P26, P39, P46, P66.
#[tokio::test(start_paused = true)]
async fn a_run_whose_caller_left_goes_on_and_is_recorded() {
    let layer = layer();
    let (app, handler) = app(&layer);
    let slow = app.clone().oneshot(send("k", &[("x-delay", "60000")]));
    let left = tokio::time::timeout(Duration::from_millis(10), slow).await;
    assert!(left.is_err());
    assert_eq!(layer.drain(Duration::from_secs(50)).await, 1);
    assert_eq!(layer.drain(Duration::from_secs(50)).await, 0);
    let repeat = app.clone().oneshot(send("k", &[])).await.unwrap();
    assert!(is_replayed(&repeat));
    assert_eq!(handler.runs.load(Ordering::SeqCst), 1);
    assert_eq!(layer.counts().detached, 1);
}

#[tokio::test(start_paused = true)]
async fn a_repeat_that_only_waits_ends_with_its_caller() {
    let layer = layer();
    let (app, _) = app(&layer);
    let first = tokio::spawn(app.clone().oneshot(send("k", &[("x-delay", "5000")])));
    tokio::time::sleep(Duration::from_millis(1)).await;
    let repeat = app.clone().oneshot(send("k", &[]));
    assert!(
        tokio::time::timeout(Duration::from_millis(10), repeat)
            .await
            .is_err()
    );
    assert_eq!(layer.drain(Duration::ZERO).await, 0);
    assert_eq!(first.await.unwrap().unwrap().status(), 201);
}

/// Field case B09.
#[tokio::test(start_paused = true)]
async fn a_run_longer_than_its_lease_keeps_it() {
    let layer = layer().lease(Duration::from_secs(3));
    let (app, handler) = app(&layer);
    let first = tokio::spawn(app.clone().oneshot(send("k", &[("x-delay", "60000")])));
    tokio::time::sleep(Duration::from_secs(30)).await;
    let repeat = app.clone().oneshot(send("k", &[])).await.unwrap();
    assert_eq!(repeat.status(), StatusCode::CONFLICT);
    assert_eq!(first.await.unwrap().unwrap().status(), 201);
    assert_eq!(handler.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn scopes_do_not_meet_and_a_request_without_one_is_refused() {
    let (app, handler) = app(&layer());
    app.clone().oneshot(send("k", &[])).await.unwrap();
    let mut bob = send("k", &[]);
    bob.headers_mut().insert("x-user", "bob".parse().unwrap());
    assert!(!is_replayed(&app.clone().oneshot(bob).await.unwrap()));
    let mut nobody = send("k", &[]);
    nobody.headers_mut().remove("x-user");
    let refused = app.clone().oneshot(nobody).await.unwrap();
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    assert!(text(refused).await.contains("missing-scope"));
    assert_eq!(handler.runs.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_large_request_is_refused_and_claims_nothing() {
    let layer = layer().max_request(4);
    let (app, handler) = app(&layer);
    let answer = app.clone().oneshot(send("k", &[])).await.unwrap();
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(handler.runs.load(Ordering::SeqCst), 0);
    assert_eq!(layer.counts().refused, 1);
}

/// Field cases P08, P17, P27, P36, P64.
#[tokio::test]
async fn a_large_response_flows_and_its_repeat_is_told_that_it_was_not_kept() {
    let layer = layer().max_response(4);
    let (app, handler) = app(&layer);
    let first = app.clone().oneshot(send("k", &[])).await.unwrap();
    assert_eq!(text(first).await, "{\"text\":\"yes\"}");
    let repeat = app.clone().oneshot(send("k", &[])).await.unwrap();
    assert_eq!(repeat.status(), StatusCode::CONFLICT);
    assert!(text(repeat).await.contains("response-not-kept"));
    assert_eq!(handler.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn the_handler_is_told_what_it_runs() {
    async fn tell(request: Request) -> String {
        let claimed = request.extensions().get::<Claimed>().unwrap();
        let message = &claimed.messages()[0];
        assert!(claimed.is_first() && claimed.others().is_empty());
        let key = message.key();
        format!(
            "{} {} {} {}",
            key.channel(),
            key.scope(),
            key.id(),
            message.attempt()
        )
    }
    let app = Router::new().route("/messages", post(tell)).layer(layer());
    let answer = app.oneshot(send("k", &[])).await.unwrap();
    assert_eq!(text(answer).await, "web alice k 1");
}
