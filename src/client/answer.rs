//! What an answer says about another attempt.

use std::time::Duration;

use http::header::{DATE, HeaderName, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

/// What becomes of a call after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The answer is the call's.
    HandOn,
    /// Another attempt, when the sender likes.
    Again,
    /// Another attempt, and not before this time has passed.
    After(Duration),
}

/// Nothing was decided: the request came too late or too early, the server or what stands before
/// it is down or has too much to do.
const PASSING: [StatusCode; 6] = [
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::TOO_EARLY,
    StatusCode::TOO_MANY_REQUESTS,
    StatusCode::BAD_GATEWAY,
    StatusCode::SERVICE_UNAVAILABLE,
    StatusCode::GATEWAY_TIMEOUT,
];

/// What an answer asks for. `also` are statuses that this server's clients retry beside the usual.
pub(crate) fn next(status: StatusCode, headers: &HeaderMap, also: &[StatusCode]) -> Next {
    match retry_after(headers) {
        // The first attempt is still running. A 409 without `Retry-After` is final: of those, the
        // server's own says that the message is done and its answer was not kept.
        Some(time) if status == StatusCode::CONFLICT => Next::After(time),
        after if PASSING.contains(&status) || also.contains(&status) => {
            after.map_or(Next::Again, Next::After)
        }
        _ => Next::HandOn,
    }
}

/// Seconds, or a date; that is measured from the answer's own, since two clocks differ.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok();
    let said = text(RETRY_AFTER)?.trim();
    if let Ok(seconds) = said.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = |text| OffsetDateTime::parse(text, &Rfc2822).ok();
    let wait = date(said)? - date(text(DATE)?)?;
    Some(wait.try_into().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next_of(status: u16, headers: &[(HeaderName, &'static str)]) -> Next {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.clone(), value.parse().unwrap()))
            .collect();
        next(status.try_into().unwrap(), &headers, &[])
    }

    #[test]
    fn what_is_decided_is_handed_on() {
        for status in [200, 201, 204, 303, 400, 401, 404, 406, 413, 422, 500, 501] {
            assert_eq!(next_of(status, &[]), Next::HandOn, "{status}");
            let later = [(RETRY_AFTER, "1")];
            assert_eq!(next_of(status, &later), Next::HandOn, "{status}");
        }
    }

    #[test]
    fn what_passes_is_tried_again() {
        for status in [408, 425, 429, 502, 503, 504] {
            assert_eq!(next_of(status, &[]), Next::Again, "{status}");
            let after = next_of(status, &[(RETRY_AFTER, "7")]);
            assert_eq!(after, Next::After(Duration::from_secs(7)), "{status}");
        }
    }

    #[test]
    fn a_conflict_is_tried_again_only_when_it_says_when() {
        assert_eq!(next_of(409, &[]), Next::HandOn);
        assert_eq!(next_of(409, &[(RETRY_AFTER, "soon")]), Next::HandOn);
        let after = next_of(409, &[(RETRY_AFTER, "2")]);
        assert_eq!(after, Next::After(Duration::from_secs(2)));
    }

    #[test]
    fn a_date_counts_from_the_answers_own() {
        let date = |when| {
            next_of(
                503,
                &[(DATE, "Sun, 06 Nov 1994 08:49:37 GMT"), (RETRY_AFTER, when)],
            )
        };
        let in_a_minute = date("Sun, 06 Nov 1994 08:50:37 GMT");
        assert_eq!(in_a_minute, Next::After(Duration::from_mins(1)));
        let past = date("Sun, 06 Nov 1994 08:49:07 GMT");
        assert_eq!(past, Next::After(Duration::ZERO));
        let undated = next_of(503, &[(RETRY_AFTER, "Sun, 06 Nov 1994 08:50:37 GMT")]);
        assert_eq!(undated, Next::Again);
    }

    #[test]
    fn a_status_can_be_added() {
        let also = [StatusCode::INTERNAL_SERVER_ERROR];
        let headers = HeaderMap::new();
        let next = next(StatusCode::INTERNAL_SERVER_ERROR, &headers, &also);
        assert_eq!(next, Next::Again);
    }
}
