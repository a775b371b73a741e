//! Proves what a caller is answered whose run was taken over by another: what the other recorded,
//! or to come again, and never the run's own success.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tower::{Layer, ServiceExt, service_fn};
use tower_idempotency::channel::{Channel, Concern, Refusal, Terms};
use tower_idempotency::store::{Claim, Lease, MemoryStore, Nonce, Store, Verdict, Wanted};
use tower_idempotency::{
    BoxError, Claimed, Delivery, Disposition, IdempotencyLayer, Keep, Key, Record, RequestBody,
    Whole,
};

/// Each byte of a body is a message.
struct Letters(Terms);

impl Channel for Letters {
    fn terms(&self, _head: &Parts) -> &Terms {
        &self.0
    }

    fn concern(&self, _head: &Parts) -> Result<Concern, Refusal> {
        Ok(Concern::Read)
    }

    fn deliveries(&self, _head: &Parts, body: &[u8]) -> Result<Vec<Delivery>, Refusal> {
        let key = |letter: &u8| key(char::from(*letter));
        Ok(body
            .iter()
            .map(|letter| Delivery::new(key(letter)))
            .collect())
    }
}

fn key(letter: char) -> Key {
    Key::new("letters", "", &[letter.to_string()])
}

/// What another process does with the messages of a run that goes on.
#[derive(Clone, Copy)]
enum Other {
    Records,
    Runs,
}

/// Posts a body whose message `a` is taken over while it is handled, and whose message `b` is
/// given back.
async fn post(body: &'static str, terms: Terms, other: Other) -> (StatusCode, Bytes) {
    let store = MemoryStore::new();
    let layer = IdempotencyLayer::new(store.clone(), Letters(terms));
    let handler = service_fn(move |request: Request<RequestBody<Full<Bytes>>>| {
        let claimed = request.extensions().get::<Claimed>().unwrap().clone();
        handle(claimed, store.clone(), other)
    });
    let request = Request::post("/").body(Full::from(body)).unwrap();
    let answer = layer.layer(handler).oneshot(request).await.unwrap();
    let status = answer.status();
    (
        status,
        answer.into_body().collect().await.unwrap().to_bytes(),
    )
}

async fn handle(
    claimed: Claimed,
    store: MemoryStore,
    other: Other,
) -> Result<Response<Full<Bytes>>, BoxError> {
    for message in claimed.messages() {
        let lease = Lease::new(message.key().clone(), message.token(), 1);
        if *message.key() == key('a') {
            take_over(&store, lease, other).await;
        } else {
            claimed.settle(message.key(), Disposition::Release);
        }
    }
    Ok(Response::new(Full::from("own")))
}

/// As if the lease had lapsed and another process had claimed the message.
async fn take_over(store: &MemoryStore, lease: Lease, other: Other) {
    let wanted = Wanted::new(lease.key().clone());
    store.settle(&[lease.release()]).await.unwrap();
    let claim = Claim::new(Nonce::random(), Duration::from_mins(1), vec![wanted]);
    let verdict = store.claim(&claim).await.unwrap().pop();
    let Some(Verdict::Run(lease)) = verdict else {
        unreachable!("the message was released");
    };
    let body = Whole {
        frames: vec![Bytes::from_static(b"the other's")],
        ..Whole::default()
    };
    let record = Arc::new(Record::new(StatusCode::CREATED, HeaderMap::new(), body));
    match other {
        Other::Records => {
            let settlement = lease.record(record, Keep::For(Duration::from_mins(1)));
            store.settle(&[settlement]).await.unwrap();
        }
        Other::Runs => drop(lease),
    }
}

/// Field case P24.
#[tokio::test]
async fn a_run_whose_successor_has_recorded_answers_that_record() {
    let (status, body) = post("a", Terms::client("letters"), Other::Records).await;
    assert_eq!((status.as_u16(), body), (201, "the other's".into()));
}

#[tokio::test]
async fn a_run_whose_successor_still_runs_answers_to_come_again() {
    let (status, body) = post("a", Terms::client("letters"), Other::Runs).await;
    assert!(
        status.is_client_error() || status.is_server_error(),
        "{status}"
    );
    assert_ne!(body, "own");
}

#[tokio::test]
async fn a_batch_with_a_message_given_back_is_no_success_though_the_other_one_is_done_elsewhere() {
    let (status, _) = post("ab", Terms::webhook("letters"), Other::Records).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
}
