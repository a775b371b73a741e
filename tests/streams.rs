//! Proves that a response that takes its time flows while it is produced, and that its end waits
//! for its record.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(
    clippy::disallowed_methods,
    reason = "a test owns the tasks that it spawns"
)]

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Empty, StreamBody};
use tokio::time::{Instant, sleep};
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_idempotency::channel::IdempotencyKey;
use tower_idempotency::store::MemoryStore;
use tower_idempotency::{BoxError, Claimed, Disposition, IdempotencyLayer, RequestBody};

type Layered = IdempotencyLayer<MemoryStore, IdempotencyKey>;
type Frames = std::pin::Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, BoxError>> + Send>>;

fn layer() -> Layered {
    IdempotencyLayer::new(MemoryStore::new(), IdempotencyKey::unscoped())
}

fn post(key: &str) -> Request<Empty<Bytes>> {
    let request = Request::post("/").header("idempotency-key", key);
    request.body(Empty::new()).unwrap()
}

/// A service that answers with frames, one a second.
#[expect(clippy::type_complexity, reason = "the name of a service is its type")]
fn slow(
    frames: &'static [&'static str],
) -> (
    Arc<AtomicU64>,
    impl Service<
        Request<RequestBody<Empty<Bytes>>>,
        Response = Response<StreamBody<Frames>>,
        Error = Infallible,
        Future: Send,
    > + Clone
    + Send
    + 'static,
) {
    let runs = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&runs);
    let service = service_fn(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        let frames = stream::iter(frames).then(|text| async move {
            sleep(Duration::from_secs(1)).await;
            match *text {
                "break" => Err(BoxError::from("broken")),
                text => Ok(Frame::data(Bytes::from_static(text.as_bytes()))),
            }
        });
        let body: Frames = Box::pin(frames);
        async move { Ok(Response::new(StreamBody::new(body))) }
    });
    (runs, service)
}

/// Field case B40.
#[tokio::test(start_paused = true)]
async fn frames_arrive_as_they_are_made_and_the_replay_is_the_same() {
    let (runs, service) = slow(&["a", "b", "c"]);
    let service = layer().layer(service);
    let began = Instant::now();
    let mut first = service
        .clone()
        .oneshot(post("k"))
        .await
        .unwrap()
        .into_body();
    assert!(
        began.elapsed() < Duration::from_millis(10),
        "the head waited"
    );
    for (at, text) in [(1, "a"), (2, "b"), (3, "c")] {
        let frame = first.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(frame, text);
        let late = began.elapsed().saturating_sub(Duration::from_secs(at));
        assert!(
            late < Duration::from_millis(10),
            "{text} came {late:?} late"
        );
    }
    assert!(first.frame().await.is_none());
    let replay = service.oneshot(post("k")).await.unwrap();
    assert!(replay.headers().contains_key("idempotency-replayed"));
    assert_eq!(
        replay.into_body().collect().await.unwrap().to_bytes(),
        "abc"
    );
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_leaves_or_never_reads_does_not_stop_the_record() {
    for reads in [false, true] {
        let layer = layer();
        let (runs, service) = slow(&["a", "b", "c"]);
        let service = layer.layer(service);
        let unread = service.clone().oneshot(post("k")).await.unwrap();
        if reads {
            drop(unread);
        } else {
            let kept = unread;
            sleep(Duration::from_secs(4)).await;
            drop(kept);
        }
        assert_eq!(layer.drain(Duration::from_secs(5)).await, 0);
        let replay = service.oneshot(post("k")).await.unwrap();
        assert_eq!(
            replay.into_body().collect().await.unwrap().to_bytes(),
            "abc"
        );
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    }
}

/// Field case P57.
#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_is_broken_for_its_caller_and_runs_again() {
    let layer = layer();
    let (runs, service) = slow(&["a", "break"]);
    let service = layer.layer(service);
    for run in 1..=2 {
        let answer = service.clone().oneshot(post("k")).await.unwrap();
        let error = answer.into_body().collect().await.unwrap_err();
        assert_eq!(error.to_string(), "broken");
        assert_eq!(runs.load(Ordering::SeqCst), run);
    }
    assert_eq!(layer.counts().released, 2);
}

/// Field case P08.
#[tokio::test(start_paused = true)]
async fn a_stream_over_the_limit_flows_on_and_is_done_without_a_body() {
    let layer = layer().max_response(2);
    let (runs, service) = slow(&["a", "b", "c", "d"]);
    let service = layer.layer(service);
    let mut first = service
        .clone()
        .oneshot(post("k"))
        .await
        .unwrap()
        .into_body();
    for text in ["a", "b", "c"] {
        assert_eq!(
            first.frame().await.unwrap().unwrap().into_data().unwrap(),
            text
        );
    }
    let repeat = service.oneshot(post("k")).await.unwrap();
    assert_eq!(repeat.status(), 409);
    assert_eq!(
        first.frame().await.unwrap().unwrap().into_data().unwrap(),
        "d"
    );
    assert!(first.frame().await.is_none());
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_repeat_of_a_running_stream_waits_for_its_end() {
    let (runs, service) = slow(&["a", "b", "c"]);
    let service = layer().layer(service);
    let first = service.clone().oneshot(post("k")).await.unwrap();
    let reading = tokio::spawn(first.into_body().collect());
    let repeat = service.oneshot(post("k")).await.unwrap();
    assert_eq!(
        repeat.into_body().collect().await.unwrap().to_bytes(),
        "abc"
    );
    assert_eq!(reading.await.unwrap().unwrap().to_bytes(), "abc");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_ready_is_recorded_before_its_head_goes_out() {
    let layer = layer();
    let service = service_fn(|_| async {
        let frames =
            stream::iter(["a", "b"]).map(|text| Ok::<_, BoxError>(Frame::data(text.into())));
        let body: Frames = Box::pin(frames.map(|frame| frame.map(|f: Frame<Bytes>| f)));
        Ok::<_, Infallible>(Response::new(StreamBody::new(body)))
    });
    let service = layer.layer(service);
    let first = service.clone().oneshot(post("k")).await.unwrap();
    assert_eq!(layer.counts().recorded, 1);
    drop(first);
    let replay = service.oneshot(post("k")).await.unwrap();
    assert_eq!(replay.into_body().collect().await.unwrap().to_bytes(), "ab");
}

/// Answers in pieces for two seconds, and gives its message back after `delay`.
fn gives_back(
    request: &Request<RequestBody<Empty<Bytes>>>,
    delay: Duration,
) -> Response<StreamBody<Frames>> {
    let claimed = request.extensions().get::<Claimed>().unwrap().clone();
    let give_back = move || {
        for message in claimed.messages() {
            assert!(claimed.settle(message.key(), Disposition::Release));
        }
    };
    if delay.is_zero() {
        give_back();
        let frames = stream::once(sleep(Duration::from_secs(2))).map(|()| Ok(text("a")));
        return Response::new(StreamBody::new(Box::pin(frames)));
    }
    let frames = stream::once(async move {
        sleep(delay).await;
        give_back();
        Ok(text("a"))
    });
    let rest = stream::once(sleep(Duration::from_secs(2))).map(|()| Ok(text("b")));
    Response::new(StreamBody::new(Box::pin(frames.chain(rest))))
}

fn text(text: &'static str) -> Frame<Bytes> {
    Frame::data(Bytes::from_static(text.as_bytes()))
}

#[tokio::test(start_paused = true)]
async fn a_message_given_back_before_the_head_makes_the_answer_no_success() {
    let service =
        service_fn(
            |request| async move { Ok::<_, Infallible>(gives_back(&request, Duration::ZERO)) },
        );
    let answer = layer().layer(service).oneshot(post("k")).await.unwrap();
    assert!(!answer.status().is_success(), "{}", answer.status());
}

#[tokio::test(start_paused = true)]
async fn a_message_given_back_behind_the_head_breaks_the_answer_off() {
    let service = service_fn(|request| async move {
        Ok::<_, Infallible>(gives_back(&request, Duration::from_secs(1)))
    });
    let answer = layer().layer(service).oneshot(post("k")).await.unwrap();
    assert!(answer.into_body().collect().await.is_err());
}
