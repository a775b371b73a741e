//! The store's clock: that of the machine which all processes on one file share.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point in time, in milliseconds since 1970, as the columns hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(i64);

impl Moment {
    /// Now. To be asked inside the transaction that uses it.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the store's clock, and it must outlive the process"
    )]
    pub(super) fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self(milliseconds(since.unwrap_or_default()))
    }

    /// What a column held.
    pub(super) fn from_column(milliseconds: i64) -> Self {
        Self(milliseconds)
    }

    /// What a column is to hold.
    pub(super) fn column(self) -> i64 {
        self.0
    }

    /// This much later. Ends at the last moment: `Duration::MAX` from now is for ever.
    pub(super) fn plus(self, time: Duration) -> Self {
        Self(self.0.saturating_add(milliseconds(time)))
    }

    /// This much earlier.
    pub(super) fn minus(self, time: Duration) -> Self {
        Self(self.0.saturating_sub(milliseconds(time)))
    }

    /// How long until `later`; zero if it has passed.
    pub(super) fn until(self, later: Self) -> Duration {
        let left = later.0.saturating_sub(self.0);
        Duration::from_millis(u64::try_from(left).unwrap_or(0))
    }
}

/// In milliseconds, rounded up, so that no lease and no retention is shorter than asked.
pub(super) fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_up_and_end_at_the_last_moment() {
        let now = Moment::from_column(1_000);
        assert_eq!(now.plus(Duration::from_nanos(1)).column(), 1_001);
        assert_eq!(now.plus(Duration::MAX).column(), i64::MAX);
        assert_eq!(
            now.until(now.plus(Duration::from_millis(7))),
            Duration::from_millis(7)
        );
        assert_eq!(now.plus(Duration::from_secs(1)).until(now), Duration::ZERO);
    }
}
