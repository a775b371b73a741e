//! What the layer costs in process: an axum route alone, and the same route behind the layer.
//!
//! Prints ratios to the bare route of the same run: the median over rounds in which all variants
//! take turns. Time is this thread's CPU time, so that other work on the machine matters little.
//! Requests are built outside the clock; response bodies are read inside it.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a bench stops where it fails"
)]
#![expect(
    clippy::future_not_send,
    reason = "a thread's CPU time stays on its thread"
)]
#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::Request;
use axum::routing::post;
use cpu_time::ThreadTime;
use http_body_util::BodyExt;
use tokio::runtime::Builder;
use tower::{Service, ServiceExt};
use tower_idempotency::IdempotencyLayer;
use tower_idempotency::channel::{IdempotencyKey, JsonPath};
use tower_idempotency::store::MemoryStore;

const ROUNDS: usize = 15;
const REQUESTS: usize = 10_000;

/// One way to mount the route.
struct Variant {
    name: &'static str,
    /// The most that the first request and the replay should cost, as multiples of the bare route.
    target: Option<(f64, f64)>,
    mount: fn(Router) -> Router,
    request: fn(usize) -> Request<Body>,
}

const VARIANTS: [Variant; 4] = [
    Variant {
        name: "bare route",
        target: None,
        mount: |router| router,
        request: |n| message(n, true),
    },
    Variant {
        name: "no key (pass lane)",
        target: None,
        mount: with_header_key,
        request: |n| message(n, false),
    },
    Variant {
        name: "header key",
        target: Some((3.5, 2.6)),
        mount: with_header_key,
        request: |n| message(n, true),
    },
    Variant {
        name: "JSON path",
        target: Some((4.0, 3.0)),
        mount: with_json_path,
        request: |n| message(n, true),
    },
];

fn with_header_key(router: Router) -> Router {
    let channel = IdempotencyKey::unscoped();
    router.layer(IdempotencyLayer::new(MemoryStore::new(), channel))
}

fn with_json_path(router: Router) -> Router {
    let channel = JsonPath::new("shop", "$.message.id").unwrap();
    let channel = channel.unverified();
    router.layer(IdempotencyLayer::new(MemoryStore::new(), channel))
}

/// A message of 1 KiB, with or without a key in its header.
fn message(n: usize, header: bool) -> Request<Body> {
    let head = format!("{{\"message\":{{\"id\":\"wamid.{n:019}\",\"text\":\"");
    let tail = "\"}}";
    let text = "x".repeat(1024 - head.len() - tail.len());
    let mut request = Request::post("/messages").header("content-type", "application/json");
    if header {
        request = request.header("idempotency-key", format!("wamid.{n:019}"));
    }
    request
        .body(Body::from(format!("{head}{text}{tail}")))
        .unwrap()
}

/// CPU nanoseconds for each request.
async fn pass(router: &Router, requests: Vec<Request<Body>>, replayed: bool) -> f64 {
    let count = u32::try_from(requests.len()).unwrap();
    let began = ThreadTime::now();
    for request in requests {
        let mut router = router.clone();
        let service = ServiceExt::<Request<Body>>::ready(&mut router)
            .await
            .unwrap();
        let response = service.call(request).await.unwrap();
        assert_eq!(
            response.headers().contains_key("idempotency-replayed"),
            replayed
        );
        response.into_body().collect().await.unwrap();
    }
    began.elapsed().as_secs_f64() * 1e9 / f64::from(count)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let is_test = std::env::args().any(|arg| arg == "--test");
    let rounds = if is_test { 1 } else { ROUNDS };
    let route = || Router::new().route("/messages", post(|body: Bytes| async { body }));
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let mut firsts = vec![Vec::new(); VARIANTS.len()];
    let mut seconds = vec![Vec::new(); VARIANTS.len()];
    for _ in 0..rounds {
        for (at, variant) in VARIANTS.iter().enumerate() {
            let router = (variant.mount)(route());
            let requests = || (0..REQUESTS).map(variant.request).collect();
            let replays = variant.target.is_some();
            firsts[at].push(runtime.block_on(pass(&router, requests(), false)));
            seconds[at].push(runtime.block_on(pass(&router, requests(), replays)));
        }
    }
    println!(
        "{:<20} {:>9} {:>7} {:>10} {:>7}",
        "1 KiB body, CPU", "first", "x bare", "second", "x bare"
    );
    let ratio = |of: &[Vec<f64>], at: usize| {
        let pairs = of[at].iter().zip(&of[0]);
        median(pairs.map(|(variant, bare)| variant / bare).collect())
    };
    for (at, variant) in VARIANTS.iter().enumerate() {
        let (first, second) = (median(firsts[at].clone()), median(seconds[at].clone()));
        let (to_first, to_second) = (ratio(&firsts, at), ratio(&seconds, at));
        let goal = variant
            .target
            .map(|(a, b)| format!("   at most {a} and {b}"));
        println!(
            "{:<20} {first:>6.0} ns {to_first:>7.2} {second:>7.0} ns {to_second:>7.2}{}",
            variant.name,
            goal.unwrap_or_default(),
        );
    }
}
