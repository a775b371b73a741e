//! Nothing is measured, and nothing is spent on it.

use std::time::{Duration, SystemTime};

use crate::watch::metric::Metric;

/// Whether anything is measured at all.
pub(crate) const IS_ON: bool = false;

#[inline]
pub(crate) fn count<const N: usize>(_: Metric, _: [&str; N], _: u64) {}

#[inline]
pub(crate) fn gauge(_: Metric, _: u64) {}

#[inline]
pub(crate) fn gauge_time(_: Metric, _: Duration) {}

#[inline]
pub(crate) fn age<const N: usize>(_: Metric, _: [&str; N], _: Option<SystemTime>) {}

/// No watch.
#[derive(Debug)]
pub(crate) struct Stopwatch;

impl Stopwatch {
    #[inline]
    pub(crate) fn start() -> Self {
        Self
    }

    #[inline]
    #[expect(clippy::unused_self, reason = "as with metrics")]
    pub(crate) fn stop<const N: usize>(&self, _: Metric, _: [&str; N]) {}
}
