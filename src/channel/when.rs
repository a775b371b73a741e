//! Senders' timestamps.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

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

/// The time that stands there as milliseconds since 1970.
pub(crate) fn millis(text: &str) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_millis(text.parse().ok()?))
}

/// The time that stands there by the calendar: RFC 3339, also without a zone (then it is UTC) and
/// with one that lacks its colon.
pub(crate) fn calendar(text: &str) -> Option<SystemTime> {
    let whole = |text: &str| OffsetDateTime::parse(text, &Rfc3339).ok();
    let at = whole(text)
        .or_else(|| whole(&format!("{text}Z")))
        .or_else(|| {
            let (rest, minutes) = text.split_at_checked(text.len().checked_sub(2)?)?;
            whole(&format!("{rest}:{minutes}"))
        })?;
    // Before 1970 there were no such messages, and sums below would not fit.
    (at >= OffsetDateTime::UNIX_EPOCH).then(|| at.into())
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
        assert_eq!(millis("1749416383001"), at(1_749_416_383_001));
    }

    #[test]
    fn calendars_differ_in_their_zones() {
        let at = Some(UNIX_EPOCH + Duration::from_millis(1_767_378_504_250));
        for text in [
            "2026-01-02T18:28:24.250Z",
            "2026-01-02T18:28:24.2500000Z",
            "2026-01-02T18:28:24.250",
            "2026-01-02T19:28:24.250+01:00",
            "2026-01-02T18:28:24.250+0000",
            "2026-01-02T13:58:24.250-0430",
        ] {
            assert_eq!(calendar(text), at, "{text}");
        }
        assert_eq!(calendar("1970-01-01T00:00:00Z"), Some(UNIX_EPOCH));
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
            assert_eq!(calendar(text), None, "{text}");
        }
        assert_eq!(millis("1.5"), None);
        assert_eq!(calendar("1969-12-31T23:59:59Z"), None);
        assert_eq!(calendar("2026-02-30T00:00:00Z"), None);
        assert_eq!(calendar("é"), None);
    }
}
