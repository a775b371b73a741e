//! Time limits, panics, and limits on how much runs at once.

use std::time::Duration;

use axum::http::StatusCode;
use tower::ServiceBuilder;
use tower::limit::ConcurrencyLimitLayer;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::timeout::TimeoutLayer;

use crate::app::{layer, message, router, send};

fn limit() -> TimeoutLayer {
    TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_secs(10))
}

const SLOW: &[(&str, &str)] = &[("x-slow", "yes")];

/// Field case B84.
#[tokio::test(start_paused = true)]
async fn a_time_limit_outside_leaves_the_run_alive() {
    let layer = layer();
    let (router, runs) = router();
    let app = router.layer(layer.clone()).layer(limit());
    let late = send(&app, message(SLOW)).await;
    assert_eq!(late.status, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(layer.drain(Duration::from_mins(2)).await, 0);
    let repeat = send(&app, message(SLOW)).await;
    assert_eq!(
        (repeat.status, repeat.is_replayed()),
        (StatusCode::CREATED, true)
    );
    assert_eq!((runs.count(), layer.counts().detached), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_time_limit_inside_ends_the_run_as_a_failure() {
    let layer = layer();
    let (router, runs) = router();
    let app = router.layer(limit()).layer(layer.clone());
    for run in 1..=2 {
        let late = send(&app, message(SLOW)).await;
        assert_eq!(
            (late.status, runs.count()),
            (StatusCode::GATEWAY_TIMEOUT, run)
        );
    }
    assert_eq!((layer.counts().released, layer.counts().detached), (2, 0));
}

/// Field case B19.
#[tokio::test]
async fn a_caught_panic_frees_the_key_on_either_side() {
    for outside in [true, false] {
        let layer = layer();
        let (router, runs) = router();
        let app = if outside {
            router.layer(layer.clone()).layer(CatchPanicLayer::new())
        } else {
            router.layer(CatchPanicLayer::new()).layer(layer.clone())
        };
        let failed = send(&app, message(&[("x-panic", "yes")])).await;
        assert_eq!(failed.status, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(send(&app, message(&[])).await.status, StatusCode::CREATED);
        assert_eq!((runs.count(), layer.counts().released), (2, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_concurrency_limit_inside_counts_runs_whose_callers_left_and_outside_it_does_not() {
    for (inside, expected) in [(true, 2), (false, 1)] {
        let layer = layer();
        let (router, runs) = router();
        let one = ServiceBuilder::new().layer(ConcurrencyLimitLayer::new(1));
        let app = if inside {
            router.layer(one).layer(layer.clone())
        } else {
            router.layer(layer.clone()).layer(one)
        };
        let began = tokio::time::Instant::now();
        let left = send(&app, message(SLOW));
        assert!(
            tokio::time::timeout(Duration::from_secs(1), left)
                .await
                .is_err()
        );
        let mut other = message(SLOW);
        other
            .headers_mut()
            .insert("idempotency-key", "l".parse().unwrap());
        send(&app, other).await;
        let minutes = began.elapsed().as_secs().div_euclid(60);
        assert_eq!((minutes, runs.count()), (expected, 2), "inside: {inside}");
    }
}
