//! Proves that the service that was polled ready is the one that is called.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tokio_test::{assert_pending, assert_ready_ok};
use tower_idempotency::channel::IdempotencyKey;
use tower_idempotency::store::MemoryStore;
use tower_idempotency::{Idempotency, IdempotencyLayer, RequestBody};
use tower_test::mock::{Handle, Mock, Spawn, spawn_layer};

type Asked = Request<RequestBody<Full<Bytes>>>;
type Answered = Response<Full<Bytes>>;
type Service = Idempotency<Mock<Asked, Answered>, MemoryStore, IdempotencyKey>;

fn service() -> (Spawn<Service>, Handle<Asked, Answered>) {
    let layer = IdempotencyLayer::new(MemoryStore::new(), IdempotencyKey::unscoped());
    spawn_layer(layer)
}

fn request(method: &str, key: &str) -> Request<Full<Bytes>> {
    let request = Request::builder()
        .method(method)
        .header("idempotency-key", key);
    request.body(Full::from("hello")).unwrap()
}

/// Field case B90.
// The mock panics when it is called without having been polled ready.
#[tokio::test]
async fn both_lanes_call_the_service_that_was_polled_ready() {
    for method in ["GET", "POST"] {
        let (mut service, mut handle) = service();
        handle.allow(0);
        assert_pending!(service.poll_ready());
        handle.allow(1);
        assert_ready_ok!(service.poll_ready());
        let answer = service.call(request(method, "k"));
        let inner = async {
            let (asked, reply) = handle.next_request().await.unwrap();
            let body = asked.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(body, "hello");
            reply.send_response(Response::new(Full::from("done")));
        };
        let (answer, ()) = tokio::join!(answer, inner);
        let body = answer.unwrap().into_body().collect().await.unwrap();
        assert_eq!(body.to_bytes(), "done");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_gives_its_place_back() {
    let (mut service, mut handle) = service();
    handle.allow(2);
    assert_ready_ok!(service.poll_ready());
    let first = tokio_test::task::spawn(service.call(request("POST", "k")));
    let mut first = first;
    assert_pending!(first.poll());
    let (_, reply) = handle.next_request().await.unwrap();
    assert_ready_ok!(service.poll_ready());
    let mut repeat = tokio_test::task::spawn(service.call(request("POST", "k")));
    assert_pending!(repeat.poll());
    reply.send_error("failed");
    assert!(first.await.is_err());
    // The repeat now runs: it polls a service ready anew, and waits for its turn.
    let waits = tokio::time::timeout(Duration::from_secs(1), &mut repeat).await;
    assert!(waits.is_err());
    handle.allow(1);
    let inner = async {
        let (_, reply) = handle.next_request().await.unwrap();
        reply.send_response(Response::new(Full::from("done")));
    };
    let (answer, ()) = tokio::join!(repeat, inner);
    assert_eq!(answer.unwrap().status(), 200);
}
