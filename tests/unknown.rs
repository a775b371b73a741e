//! Proves what becomes of a message whose run ended without saying whether its work was done, where
//! that is parked: nothing runs again until somebody says, or its time has passed.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "a test owns the tasks that it spawns"
)]

#[path = "unknown/app.rs"]
mod app;
#[path = "unknown/batches.rs"]
mod batches;
#[path = "unknown/killed.rs"]
mod killed;
#[path = "unknown/settling.rs"]
mod settling;

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use http_body_util::BodyExt;
use tokio::time::{advance, sleep};
use tower::{Layer, ServiceExt, service_fn};
use tower_idempotency::channel::{ByPath, IdempotencyKey, Parking, Scope};
use tower_idempotency::store::MemoryStore;
use tower_idempotency::{IdempotencyLayer, OnUnknown, RequestBody};

use crate::app::{App, UNKNOWN_FOR, is_replayed, is_unknown, parking, send, text};

#[tokio::test(start_paused = true)]
async fn a_panic_parks_the_key_and_a_repeat_is_told_at_once() {
    let app = App::new(parking());
    let panicking = tokio::spawn(app.router.clone().oneshot(send("k", "panic")));
    assert!(panicking.await.unwrap_err().is_panic());
    let repeat = app.send("k", "done").await;
    assert_eq!(repeat.headers()["retry-after"], "60");
    is_unknown(repeat).await;
    assert_eq!(app.runs(), 1);
    let counts = app.layer.counts();
    assert_eq!((counts.parked, counts.released, counts.unknown), (1, 0, 1));
}

/// Field cases B12, P42.
#[tokio::test(start_paused = true)]
async fn an_answer_of_a_timeout_reaches_its_caller_and_parks_the_key() {
    for (told, status) in [("408", 408), ("504", 504), ("hang", 504)] {
        let app = App::new(parking());
        assert_eq!(app.send("k", told).await.status(), status, "{told}");
        is_unknown(app.send("k", "done").await).await;
        assert_eq!(app.runs(), 1, "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn another_error_says_what_happened_and_runs_again() {
    for (told, status) in [("400", 400), ("500", 500), ("503", 503)] {
        let app = App::new(parking());
        assert_eq!(app.send("k", told).await.status(), status);
        assert_eq!(app.send("k", "done").await.status(), 201, "{told}");
        assert_eq!(app.layer.counts().parked, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn the_handler_says_that_it_does_not_know() {
    let app = App::new(parking());
    assert_eq!(app.send("k", "unknown").await.status(), 202);
    is_unknown(app.send("k", "done").await).await;
}

#[tokio::test(start_paused = true)]
async fn the_inner_services_error_parks_the_key() {
    let layer = parking();
    let failing = service_fn(async |_: Request<RequestBody<Body>>| {
        Err::<Response, _>(std::io::Error::other("cut"))
    });
    let failed = layer.layer(failing).oneshot(send("k", "")).await;
    assert_eq!(failed.unwrap_err().to_string(), "cut");
    let done = service_fn(async |_: Request<RequestBody<Body>>| {
        Ok::<_, Infallible>(Response::new(Body::empty()))
    });
    let repeat = layer.layer(done).oneshot(send("k", "")).await.unwrap();
    is_unknown(repeat.map(Body::new)).await;
}

#[tokio::test(start_paused = true)]
async fn a_response_that_breaks_parks_the_key() {
    let app = App::new(parking());
    assert_eq!(app.send("early", "break").await.status(), 500);
    let streaming = app.send("late", "break-late").await;
    assert_eq!(streaming.status(), 200);
    assert!(streaming.into_body().collect().await.is_err());
    for key in ["early", "late"] {
        is_unknown(app.send(key, "done").await).await;
    }
    assert_eq!(app.runs(), 2);
}

#[tokio::test(start_paused = true)]
async fn by_default_it_runs_again() {
    let app = App::new(IdempotencyLayer::new(MemoryStore::new(), app::channel()));
    for told in ["504", "unknown", "break"] {
        app.send("k", told).await;
    }
    assert_eq!(app.send("k", "done").await.status(), 201);
    assert_eq!(app.runs(), 4);
    assert_eq!(app.layer.counts().parked, 0);
}

#[tokio::test(start_paused = true)]
async fn when_its_time_has_passed_the_next_repeat_runs() {
    let app = App::new(parking());
    app.send("k", "504").await;
    advance(UNKNOWN_FOR.saturating_sub(Duration::from_secs(1))).await;
    let repeat = app.send("k", "done").await;
    assert_eq!(repeat.headers()["retry-after"], "1");
    is_unknown(repeat).await;
    advance(Duration::from_secs(1)).await;
    let next = app.send("k", "done").await;
    assert_eq!((next.status(), app.runs()), (StatusCode::CREATED, 2));
    assert_eq!(next.headers()["x-attempt"], "2");
    assert!(is_replayed(&app.send("k", "done").await));
}

#[tokio::test(start_paused = true)]
async fn a_repeat_that_waits_is_told_when_the_run_ends() {
    let app = App::new(parking());
    let first = app.send("k", "hang");
    let repeat = async {
        sleep(Duration::from_millis(10)).await;
        app.send("k", "done").await
    };
    let (first, repeat) = tokio::join!(first, repeat);
    assert_eq!(first.status(), 504);
    is_unknown(repeat).await;
    assert_eq!(app.layer.counts().waited, 1);
}

#[tokio::test(start_paused = true)]
async fn another_request_under_a_parked_key_is_refused_as_ever() {
    let app = App::new(parking());
    app.send("k", "504").await;
    let mut other = send("k", "done");
    *other.body_mut() = Body::from("another message");
    let refused = app.router.clone().oneshot(other).await.unwrap();
    assert_eq!(refused.status(), 422);
    assert!(text(refused).await.contains("key-reused"));
}

#[tokio::test(start_paused = true)]
async fn a_grpc_caller_is_told_by_a_failed_precondition() {
    let app = App::new(parking());
    let call = |told| {
        let mut call = send("k", told);
        let headers = call.headers_mut();
        headers.insert("content-type", "application/grpc".parse().unwrap());
        *call.body_mut() = Body::from(&[0, 0, 0, 0, 0][..]);
        app.router.clone().oneshot(call)
    };
    // Without a status, which a call that was cut has not.
    assert_eq!(call("200").await.unwrap().status(), 200);
    let repeat = call("done").await.unwrap();
    assert_eq!(repeat.headers()["grpc-status"], "9");
    assert_eq!(repeat.headers()["grpc-retry-pushback-ms"], "60000");
    assert_eq!(app.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_channel_parks_beside_one_that_runs_again_and_the_layer_overrides_both() {
    let named = |name| IdempotencyKey::scoped_by(Scope::header("x-user")).named(name);
    let channels = || {
        ByPath::new()
            .at("/messages", Parking::new(named("parking"), UNKNOWN_FOR))
            .at("/other", named("other"))
    };
    let layer = || IdempotencyLayer::new(MemoryStore::new(), channels());
    let park = OnUnknown::Park {
        unknown_for: UNKNOWN_FOR,
    };
    let table = [
        (layer(), [409, 201]),
        (layer().on_unknown(park), [409, 409]),
        (layer().on_unknown(OnUnknown::RunAgain), [201, 201]),
    ];
    for (layer, statuses) in table {
        let app = App::new(layer);
        for (path, status) in ["/messages", "/other"].into_iter().zip(statuses) {
            assert_eq!(app.post(path, "504").await.status(), 504, "{path}");
            assert_eq!(app.post(path, "done").await.status(), status, "{path}");
        }
    }
}
