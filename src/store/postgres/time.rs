//! Times as the server takes and gives them.

use std::time::Duration;

/// Longer than any lease or retention that means something; the server's calendar ends later.
const MOST: Duration = Duration::from_hours(24 * 365 * 1000);

/// Milliseconds, rounded up: no lease and no retention is shorter than was asked.
pub(super) fn to_server(time: Duration) -> i64 {
    let milliseconds = time.min(MOST).as_nanos().div_ceil(1_000_000);
    i64::try_from(milliseconds).unwrap_or(i64::MAX)
}

/// From microseconds; what has passed is zero.
pub(super) fn from_server(microseconds: Option<i64>) -> Duration {
    let left = microseconds.unwrap_or_default();
    Duration::from_micros(u64::try_from(left).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_is_not_cut_short() {
        assert_eq!(to_server(Duration::from_nanos(1)), 1);
        assert_eq!(to_server(Duration::from_millis(30)), 30);
        assert_eq!(to_server(Duration::MAX), 31_536_000_000_000);
    }

    #[test]
    fn what_has_passed_leaves_nothing() {
        assert_eq!(from_server(Some(-5)), Duration::ZERO);
        assert_eq!(from_server(Some(5)), Duration::from_micros(5));
    }
}
