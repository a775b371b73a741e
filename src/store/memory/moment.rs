//! Points in time by the store's clock.

use std::time::Duration;

use tokio::time::Instant;

/// Nanoseconds since the store was made.
///
/// Half the size of an `Instant`, and adding to it ends at the last moment instead of panicking:
/// `Keep::For(Duration::MAX)` is for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(u64);

impl Moment {
    pub(super) fn since(epoch: Instant) -> Self {
        Self(nanos(epoch.elapsed()))
    }

    pub(super) fn from_number(number: u64) -> Self {
        Self(number)
    }

    pub(super) fn number(self) -> u64 {
        self.0
    }

    pub(super) fn plus(self, time: Duration) -> Self {
        Self(self.0.saturating_add(nanos(time)))
    }

    /// How long until `later`; zero if it has passed.
    pub(super) fn until(self, later: Self) -> Duration {
        Duration::from_nanos(later.0.saturating_sub(self.0))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
