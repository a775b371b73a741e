//! What a recorder of the test's own has seen.

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tokio::runtime::Builder;
use tower_idempotency::watch::metric::Metric;

/// All measurements of one scenario.
pub(crate) struct Seen(Vec<(String, Vec<String>, DebugValue)>);

/// Runs a scenario under a recorder of its own, in paused time.
pub(crate) fn seen<F: Future<Output = ()>>(scenario: impl FnOnce() -> F) -> Seen {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    metrics::with_local_recorder(&recorder, || runtime.block_on(scenario()));
    let all = snapshotter.snapshot().into_vec();
    let named = all.into_iter().map(|(key, _, _, value)| {
        let key = key.key();
        let labels = key.labels().map(|label| label.value().to_owned());
        (key.name().to_owned(), labels.collect(), value)
    });
    Seen(named.collect())
}

impl Seen {
    /// What a counter has counted.
    pub(crate) fn counted(&self, metric: Metric, labels: &[&str]) -> u64 {
        match self.find(metric, labels) {
            Some(DebugValue::Counter(n)) => *n,
            None => 0,
            other => unreachable!("no counter: {other:?}"),
        }
    }

    /// What a gauge shows.
    pub(crate) fn gauged(&self, metric: Metric) -> f64 {
        match self.find(metric, &[]) {
            Some(DebugValue::Gauge(value)) => value.into_inner(),
            other => unreachable!("no gauge: {other:?}"),
        }
    }

    /// What a histogram was given.
    pub(crate) fn measured(&self, metric: Metric, labels: &[&str]) -> Vec<f64> {
        match self.find(metric, labels) {
            Some(DebugValue::Histogram(values)) => {
                values.iter().map(|it| it.into_inner()).collect()
            }
            None => Vec::new(),
            other => unreachable!("no histogram: {other:?}"),
        }
    }

    fn find(&self, metric: Metric, labels: &[&str]) -> Option<&DebugValue> {
        assert_eq!(metric.labels.len(), labels.len(), "{}", metric.name);
        let mut all = self.0.iter();
        let found = all.find(|(name, values, _)| name == metric.name && values == labels);
        found.map(|(.., value)| value)
    }
}
