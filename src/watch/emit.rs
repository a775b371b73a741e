//! Where measurements go: to the application's recorder, or nowhere.

#[cfg(feature = "metrics")]
pub(crate) use crate::watch::with_metrics::{IS_ON, Stopwatch, age, count, gauge, gauge_time};
#[cfg(not(feature = "metrics"))]
pub(crate) use crate::watch::without_metrics::{IS_ON, Stopwatch, age, count, gauge, gauge_time};
