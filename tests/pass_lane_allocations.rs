//! A request that does not concern the channel passes the layer without an allocation.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::convert::Infallible;

use allocation_counter::measure;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{Empty, Full};
use tokio::runtime::{Builder, Runtime};
use tower::{Layer, Service, service_fn};
use tower_idempotency::IdempotencyLayer;
use tower_idempotency::channel::{ByPath, IdempotencyKey, Scope};
use tower_idempotency::store::MemoryStore;

type Body = Full<Bytes>;

#[test]
fn a_get_passes_without_an_allocation() {
    assert_eq!(added(|| request("GET", "/chat", None)), 0);
}

#[test]
fn a_request_without_a_key_passes_without_an_allocation() {
    assert_eq!(added(|| request("POST", "/chat", None)), 0);
}

#[test]
fn a_path_without_a_channel_passes_without_an_allocation() {
    assert_eq!(added(|| request("POST", "/elsewhere", Some("k"))), 0);
}

#[test]
fn a_request_with_a_key_is_counted_so_the_counter_counts() {
    assert!(added(|| request("POST", "/chat", Some("k"))) > 0);
}

/// How many allocations the layer adds to one call of a service.
fn added(request: impl Fn() -> Request<Body>) -> u64 {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let service =
        service_fn(|_| async { Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new())) });
    let channels = ByPath::new().at("/chat", IdempotencyKey::scoped_by(Scope::fixed("all")));
    let layered = {
        let _entered = runtime.enter();
        IdempotencyLayer::new(MemoryStore::new(), channels).layer(service)
    };
    let bare = service_fn(|_| async { Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new())) });
    calls(&runtime, layered, &request) - calls(&runtime, bare, &request)
}

/// The allocations of one call, after one that warms up what is made once.
fn calls<S, R>(runtime: &Runtime, mut service: S, request: impl Fn() -> Request<Body>) -> u64
where
    S: Service<Request<Body>, Response = Response<R>, Error = Infallible>,
{
    let mut allocations = 0;
    for _ in 0..2 {
        let request = request();
        let counted = measure(|| {
            runtime.block_on(async {
                let response = service.call(request).await;
                drop(response);
            });
        });
        allocations = counted.count_total;
    }
    allocations
}

fn request(method: &str, path: &str, key: Option<&str>) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    request.body(Body::default()).unwrap()
}
