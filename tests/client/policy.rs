//! What the policy does about each attempt, with the times that it waits.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use tokio::time::Instant;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt, service_fn};
use tower_idempotency::client::{RetryPolicy, SetKeyLayer, new_key};

/// The attempts that a server saw: when, and with which key.
type Attempts = Arc<Mutex<Vec<(Instant, Option<HeaderValue>)>>>;

/// Sends one request to a server that gives each attempt the same answer.
async fn attempts(
    policy: RetryPolicy,
    request: Request<Bytes>,
    answer: fn() -> Result<Response<()>, BoxError>,
) -> Vec<(Instant, Option<HeaderValue>)> {
    let seen = Attempts::default();
    let server = service_fn(|request: Request<Bytes>| {
        let key = request.headers().get("idempotency-key").cloned();
        seen.lock().unwrap().push((Instant::now(), key));
        async move { answer() }
    });
    let sent = ServiceBuilder::new().retry(policy).service(server);
    drop(sent.oneshot(request).await);
    Arc::into_inner(seen).unwrap().into_inner().unwrap()
}

fn answered(status: u16, retry_after: Option<&'static str>) -> Response<()> {
    let mut answer = Response::new(());
    *answer.status_mut() = StatusCode::from_u16(status).unwrap();
    if let Some(after) = retry_after {
        let after = HeaderValue::from_static(after);
        answer.headers_mut().insert("retry-after", after);
    }
    answer
}

fn keyed() -> Request<Bytes> {
    Request::post("/")
        .header("idempotency-key", "7f0c")
        .body(Bytes::from_static(b"hello"))
        .unwrap()
}

fn waits(attempts: &[(Instant, Option<HeaderValue>)]) -> Vec<Duration> {
    let pairs = attempts.windows(2);
    pairs.map(|two| two[1].0 - two[0].0).collect()
}

#[tokio::test(start_paused = true)]
async fn eight_attempts_carry_one_key() {
    let lost = || Err("the answer is lost".into());
    let seen = attempts(RetryPolicy::new(), keyed(), lost).await;
    assert_eq!(seen.len(), 8);
    assert!(
        seen.iter()
            .all(|(_, key)| key == &seen[0].1 && key.is_some())
    );
}

#[tokio::test(start_paused = true)]
async fn waits_double_up_to_the_longest_less_up_to_a_half() {
    let policy = RetryPolicy::new().backoff(Duration::from_secs(1), Duration::from_secs(4));
    let seen = attempts(policy, keyed(), || Ok(answered(503, None))).await;
    for (wait, full) in waits(&seen).iter().zip([1, 2, 4, 4, 4, 4, 4]) {
        let full = Duration::from_secs(full);
        // The timer's steps are a millisecond.
        let most = full + Duration::from_millis(2);
        assert!(full / 2 <= *wait && *wait <= most, "{wait:?} of {full:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_calls_wait_differently_also_at_the_longest() {
    let policy = RetryPolicy::new().backoff(Duration::from_secs(4), Duration::from_secs(4));
    let lost = || Err("the answer is lost".into());
    let one = attempts(policy.clone(), keyed(), lost).await;
    let other = attempts(policy, keyed(), lost).await;
    assert_ne!(waits(&one), waits(&other));
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_waited_for_and_not_all_at_one_moment() {
    let busy = || Ok(answered(409, Some("5")));
    let seen = attempts(RetryPolicy::new(), keyed(), busy).await;
    let waits = waits(&seen);
    assert_eq!(waits.len(), 7);
    let (least, most) = (Duration::from_secs(5), Duration::from_millis(12_502));
    assert!(
        waits.iter().all(|wait| (least..most).contains(wait)),
        "{waits:?}"
    );
    assert!(waits[0] != waits[1], "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn the_last_attempt_begins_before_the_limit() {
    let policy = RetryPolicy::new().attempts(1000);
    let began = Instant::now();
    let seen = attempts(policy, keyed(), || Ok(answered(503, None))).await;
    let last = seen.last().unwrap().0 - began;
    assert!(
        Duration::from_secs(49) < last && last <= Duration::from_mins(1),
        "{last:?}"
    );

    let later = || Ok(answered(503, Some("61")));
    let seen = attempts(RetryPolicy::new(), keyed(), later).await;
    assert_eq!(seen.len(), 1, "what is told to come too late does not come");
}

#[tokio::test(start_paused = true)]
async fn the_limit_counts_from_each_call_of_one_service() {
    let seen = Arc::<Mutex<u32>>::default();
    let server = service_fn(|_: Request<Bytes>| {
        *seen.lock().unwrap() += 1;
        async { Err::<Response<()>, BoxError>("the answer is lost".into()) }
    });
    let policy = RetryPolicy::new().attempts(2);
    let mut sent = ServiceBuilder::new().retry(policy).service(server);
    for calls in 1..=3 {
        tokio::time::advance(Duration::from_mins(2)).await;
        drop(sent.ready().await.unwrap().call(keyed()).await);
        assert_eq!(*seen.lock().unwrap(), 2 * calls);
    }
}

#[tokio::test(start_paused = true)]
async fn what_has_no_key_is_sent_once_unless_it_is_safe() {
    let lost = || Err("the answer is lost".into());
    for (method, times) in [
        (Method::POST, 1),
        (Method::PUT, 1),
        (Method::DELETE, 1),
        (Method::GET, 8),
        (Method::HEAD, 8),
    ] {
        let mut request = Request::new(Bytes::new());
        *request.method_mut() = method.clone();
        let seen = attempts(RetryPolicy::new(), request, lost).await;
        assert_eq!(seen.len(), times, "{method}");
    }
    let keyless = Request::post("/").body(Bytes::new()).unwrap();
    let seen = attempts(RetryPolicy::new().id_elsewhere(), keyless, lost).await;
    assert_eq!(seen.len(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_422_and_a_409_cannot_be_made_to_be_tried_again() {
    for status in [409, 422] {
        let policy = RetryPolicy::new().retry_status(StatusCode::from_u16(status).unwrap());
        let answer = match status {
            409 => || Ok(answered(409, None)),
            _ => || Ok(answered(422, None)),
        };
        assert_eq!(attempts(policy, keyed(), answer).await.len(), 1, "{status}");
    }
    let policy = RetryPolicy::new().retry_status(StatusCode::INTERNAL_SERVER_ERROR);
    let seen = attempts(policy, keyed(), || Ok(answered(500, None))).await;
    assert_eq!(seen.len(), 8);
}

#[tokio::test]
async fn a_key_is_set_where_one_is_missing_and_needed() {
    let key_of = |layer: SetKeyLayer, request: Request<Bytes>| async move {
        let echo = service_fn(|request: Request<Bytes>| async move {
            Ok::<_, BoxError>(request.headers().clone())
        });
        let headers = ServiceBuilder::new().layer(layer).service(echo);
        let headers = headers.oneshot(request).await.unwrap();
        let keys: Vec<_> = headers
            .values()
            .map(|key| key.to_str().unwrap().to_owned())
            .collect();
        keys
    };
    let post = || Request::post("/").body(Bytes::new()).unwrap();
    let get = Request::get("/").body(Bytes::new()).unwrap();
    assert!(key_of(SetKeyLayer::v7(), get).await.is_empty());
    assert_eq!(key_of(SetKeyLayer::v7(), keyed()).await, ["7f0c"]);

    let v7 = key_of(SetKeyLayer::v7(), post()).await;
    let v4 = key_of(SetKeyLayer::v4().header("x-message-key"), post()).await;
    let version = |key: &str| uuid::Uuid::parse_str(key).unwrap().get_version_num();
    assert_eq!(
        (version(&v7[0]), version(&v4[0]), version(&new_key())),
        (7, 4, 7)
    );
    assert_ne!(v7, key_of(SetKeyLayer::v7(), post()).await);
}

#[tokio::test(start_paused = true)]
async fn a_key_in_another_header_is_a_key() {
    let seen = Arc::<Mutex<Vec<HeaderValue>>>::default();
    let server = service_fn(|request: Request<Bytes>| {
        let key = request.headers()["x-message-key"].clone();
        seen.lock().unwrap().push(key);
        async { Err::<Response<()>, BoxError>("the answer is lost".into()) }
    });
    let client = ServiceBuilder::new()
        .layer(SetKeyLayer::v7().header("x-message-key"))
        .retry(RetryPolicy::new())
        .service(server);
    let request = Request::post("/").body(Bytes::new()).unwrap();
    drop(client.oneshot(request).await);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 8);
    assert!(seen.iter().all(|key| key == seen[0]));
}
