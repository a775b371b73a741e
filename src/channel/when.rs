//! Senders' timestamps.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time that stands there as seconds since 1970, with or without a fraction.
pub(crate) fn seconds(text: &str) -> Option<SystemTime> {
    if let Ok(whole) = text.parse() {
        return UNIX_EPOCH.checked_add(Duration::from_secs(whole));
    }
    let (whole, fraction) = text.split_once('.')?;
    let at = UNIX_EPOCH.checked_add(Duration::from_secs(whole.parse().ok()?))?;
    // Digits behind the ninth are below a nanosecond.
    let fraction = fraction.get(..9).unwrap_or(fraction);
    let places = u32::try_from(9_usize.checked_sub(fraction.len())?).ok()?;
    let nanos = fraction.parse::<u64>().ok()? * 10_u64.pow(places);
    at.checked_add(Duration::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_may_have_a_fraction() {
        let at = |millis| Some(UNIX_EPOCH + Duration::from_millis(millis));
        assert_eq!(seconds("1749416383"), at(1_749_416_383_000));
        assert_eq!(seconds("1749416383.5"), at(1_749_416_383_500));
        assert_eq!(seconds("1749416383.0010000009"), at(1_749_416_383_001));
    }

    #[test]
    fn what_is_no_time_gives_none() {
        for text in [
            "",
            "-1",
            "x",
            "1e3",
            "1.x",
            "1.-1",
            "99999999999999999999",
            "18446744073709551615",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
