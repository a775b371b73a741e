//! Measurements go to the application's recorder.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::{LazyLock, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use foldhash::fast::FixedState;
use metrics::{Key, Label, Level, Metadata, Recorder, Unit, with_recorder};
use tokio::time::Instant;

use crate::watch::metric::{ALL, Kind, Metric};

/// Whether anything is measured at all.
pub(crate) const IS_ON: bool = true;

/// Tells the installed recorder what the metrics are. Call it once, after installing it.
pub fn describe() {
    for metric in ALL {
        match metric.kind {
            Kind::Counter => metrics::describe_counter!(metric.name, metric.about),
            Kind::Gauge => metrics::describe_gauge!(metric.name, metric.about),
            Kind::Histogram => {
                metrics::describe_histogram!(metric.name, Unit::Seconds, metric.about);
            }
        }
    }
}

/// Counts `n` of one kind; the values stand in the order of the metric's labels.
pub(crate) fn count<const N: usize>(metric: Metric, values: [&str; N], n: u64) {
    tell(metric, values, |recorder, key| {
        recorder.register_counter(key, &ABOUT).increment(n);
    });
}

/// Sets a gauge.
#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "a gauge is a floating number; beyond 2^53 its last digits do not matter"
)]
pub(crate) fn gauge(metric: Metric, value: u64) {
    metrics::gauge!(metric.name).set(value as f64);
}

/// Sets a gauge to a duration.
pub(crate) fn gauge_time(metric: Metric, time: Duration) {
    metrics::gauge!(metric.name).set(time.as_secs_f64());
}

/// Measures how long ago a moment of the sender's clock was; one that lies ahead is now.
#[expect(
    clippy::disallowed_methods,
    reason = "compared with the sender's clock, and only measured"
)]
pub(crate) fn age<const N: usize>(metric: Metric, values: [&str; N], since: Option<SystemTime>) {
    if let Some(since) = since {
        let age = SystemTime::now().duration_since(since).unwrap_or_default();
        observe(metric, values, age);
    }
}

fn observe<const N: usize>(metric: Metric, values: [&str; N], time: Duration) {
    tell(metric, values, |recorder, key| {
        recorder.register_histogram(key, &ABOUT).record(time);
    });
}

/// Names a metric to the recorder.
///
/// Its name and labels are put together once; the recorder is asked each time, since a handle that
/// was made before the application installed its recorder would count for nobody.
fn tell<const N: usize>(metric: Metric, values: [&str; N], say: impl FnOnce(&dyn Recorder, &Key)) {
    let hash = FixedState::default().hash_one((metric.name, values));
    let keys = KEYS.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(key) = keys.get(&hash)
        && key.name() == metric.name
        && key.labels().map(Label::value).eq(values)
    {
        return with_recorder(|recorder| say(recorder, key));
    }
    drop(keys);
    let key = Key::from_parts(metric.name, labels(metric, values));
    with_recorder(|recorder| say(recorder, &key));
    let mut keys = KEYS.write().unwrap_or_else(PoisonError::into_inner);
    keys.entry(hash).or_insert(key);
}

/// As many as there are channels, outcomes and operations.
static KEYS: LazyLock<RwLock<HashMap<u64, Key>>> = LazyLock::new(RwLock::default);

static ABOUT: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

fn labels<const N: usize>(metric: Metric, values: [&str; N]) -> Vec<Label> {
    let names = metric.labels.iter().copied();
    let label = |(name, value): (&'static str, &str)| Label::new(name, value.to_owned());
    names.zip(values).map(label).collect()
}

/// Measures how long something takes.
#[derive(Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn stop<const N: usize>(&self, metric: Metric, values: [&str; N]) {
        observe(metric, values, self.0.elapsed());
    }
}
