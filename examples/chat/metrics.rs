//! `/metrics` for Prometheus: what the layer and the queue measure.
//!
//! A real server mounts it where its Prometheus comes and its customers do not.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tower_idempotency::BoxError;
use tower_idempotency::inbox::Letters;
use tower_idempotency::store::BoxStore;
use tower_idempotency::watch::{describe, metric};

use crate::app::Failure;

/// From a store in the same process to one that does not answer.
const CALLS: [f64; 9] = [0.0005, 0.001, 0.0025, 0.01, 0.05, 0.25, 1.0, 2.5, 5.0];
const WAITS: [f64; 7] = [0.1, 0.5, 1.0, 2.5, 5.0, 7.5, 10.0];
/// From a second to eight days.
const AGES: [f64; 8] = [
    1.0, 10.0, 60.0, 600.0, 3_600.0, 21_600.0, 86_400.0, 691_200.0,
];

#[derive(Clone)]
struct Metrics {
    recorder: PrometheusHandle,
    store: Option<BoxStore>,
}

/// Installs the recorder, which must be there before the first request is.
pub(crate) fn routes(store: Option<BoxStore>) -> Result<Router, BoxError> {
    let buckets = [
        (metric::STORE_SECONDS, &CALLS[..]),
        (metric::WAIT_SECONDS, &WAITS),
        (metric::REPEAT_AGE_SECONDS, &AGES),
    ];
    let mut builder = PrometheusBuilder::new();
    for (metric, buckets) in buckets {
        let name = Matcher::Full(metric.name.to_owned());
        builder = builder.set_buckets_for_metric(name, buckets)?;
    }
    let recorder = builder.install_recorder()?;
    describe();
    #[expect(clippy::disallowed_methods, reason = "the application spawns")]
    tokio::spawn(tidy(recorder.clone()));
    let metrics = Metrics { recorder, store };
    Ok(Router::new()
        .route("/metrics", get(scrape))
        .with_state(metrics))
}

async fn scrape(State(metrics): State<Metrics>) -> Result<Response, Failure> {
    if let Some(store) = metrics.store {
        // Sets the gauges of what waits.
        let backlog = Letters::new(store).backlog().await;
        backlog.map_err(BoxError::from)?;
    }
    let kind = [(CONTENT_TYPE, "text/plain; version=0.0.4")];
    Ok((kind, metrics.recorder.render()).into_response())
}

/// Histograms gather single values until somebody looks: while nobody scrapes, this does.
async fn tidy(recorder: PrometheusHandle) {
    loop {
        tokio::time::sleep(Duration::from_secs(5)).await;
        recorder.run_upkeep();
    }
}
