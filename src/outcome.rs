//! How a run ends, as pure functions of what is seen of its answer.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode};

use crate::channel::contract::OnUnknown;
use crate::policy::{Disposition, GRPC_STATUS, Options, Outcome, Protocol};
use crate::record::Keep;

/// How the runs of a request end, by the layer's options and its channel's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) keep: Keep,
    pub(crate) on_unknown: OnUnknown,
}

impl Ends {
    /// How a run ends, as far as the head of its answer tells; `None` if only the trailers will.
    pub(crate) fn at_head(
        self,
        options: &Options,
        protocol: Protocol,
        head: (StatusCode, &HeaderMap, Option<Disposition>),
    ) -> Option<Outcome> {
        let (status, headers, disposition) = head;
        if status.is_informational() {
            // A connection that was upgraded cannot be given to anybody else.
            return Some(Outcome::Release);
        }
        if let Some(disposition) = disposition {
            return Some(self.obey(disposition));
        }
        if protocol == Protocol::Grpc && status == StatusCode::OK {
            return headers.get(GRPC_STATUS).map(|_| self.grpc(headers));
        }
        let done = status.is_success() || status.is_redirection();
        Some(if done || options.also_recorded.contains(&status) {
            Outcome::Record(self.keep)
        } else if CUT.contains(&status) {
            self.unknown()
        } else {
            Outcome::Release
        })
    }

    /// How a run ends whose head left it open. An end without a status is a cut one.
    pub(crate) fn at_end(self, trailers: Option<&HeaderMap>) -> Outcome {
        trailers.map_or_else(|| self.unknown(), |trailers| self.grpc(trailers))
    }

    /// What the handler says about one message, or the whole answer.
    pub(crate) fn obey(self, disposition: Disposition) -> Outcome {
        match disposition {
            Disposition::Record => Outcome::Record(self.keep),
            Disposition::RecordFor(time) => Outcome::Record(Keep::For(time)),
            Disposition::Release => Outcome::Release,
            Disposition::Unknown => self.unknown(),
        }
    }

    /// How a run ends that does not say whether its work was done.
    pub(crate) fn unknown(self) -> Outcome {
        match self.on_unknown {
            OnUnknown::RunAgain => Outcome::Release,
            OnUnknown::Park { .. } => Outcome::Unknown,
        }
    }

    /// For how long nothing is run whose outcome is unknown.
    pub(crate) fn unknown_for(self) -> Option<Duration> {
        match self.on_unknown {
            OnUnknown::RunAgain => None,
            OnUnknown::Park { unknown_for } => Some(unknown_for),
        }
    }

    fn grpc(self, fields: &HeaderMap) -> Outcome {
        match fields.get(GRPC_STATUS).map(HeaderValue::as_bytes) {
            Some(b"0") => Outcome::Record(self.keep),
            // CANCELLED, which tonic's own timeout gives; DEADLINE_EXCEEDED; or a cut end.
            Some(b"1" | b"4") | None => self.unknown(),
            Some(_) => Outcome::Release,
        }
    }
}

/// Answers of a timeout: what it cut may have done its work.
const CUT: [StatusCode; 2] = [StatusCode::REQUEST_TIMEOUT, StatusCode::GATEWAY_TIMEOUT];

#[cfg(test)]
mod tests {
    use super::*;

    const KEEP: Keep = Keep::For(Duration::from_secs(7));
    const RECORD: Option<Outcome> = Some(Outcome::Record(KEEP));
    const RELEASE: Option<Outcome> = Some(Outcome::Release);
    const UNKNOWN: Option<Outcome> = Some(Outcome::Unknown);

    const AGAIN: Ends = Ends {
        keep: KEEP,
        on_unknown: OnUnknown::RunAgain,
    };
    const PARK: Ends = Ends {
        keep: KEEP,
        on_unknown: OnUnknown::Park {
            unknown_for: Duration::from_secs(9),
        },
    };

    fn http(ends: Ends, status: u16, disposition: Option<Disposition>) -> Option<Outcome> {
        let options = Options {
            also_recorded: vec![StatusCode::NOT_FOUND],
            ..Options::default()
        };
        let status = StatusCode::from_u16(status).unwrap();
        let head = (status, &HeaderMap::new(), disposition);
        ends.at_head(&options, Protocol::Http, head)
    }

    fn status(code: &str) -> HeaderMap {
        HeaderMap::from_iter([(GRPC_STATUS, code.parse().unwrap())])
    }

    #[test]
    fn success_and_redirection_are_recorded_and_nothing_else_is() {
        for status in [200, 201, 202, 204, 205, 301, 303, 304, 308] {
            assert_eq!(http(AGAIN, status, None), RECORD, "{status}");
            assert_eq!(http(PARK, status, None), RECORD, "{status}");
        }
        for status in [400, 401, 403, 408, 409, 422, 425, 429, 500, 502, 503, 504] {
            assert_eq!(http(AGAIN, status, None), RELEASE, "{status}");
        }
    }

    #[test]
    fn the_answers_of_a_timeout_are_parked_and_no_other_answer_is() {
        for status in [408, 504] {
            assert_eq!(http(PARK, status, None), UNKNOWN, "{status}");
        }
        for status in [400, 401, 403, 409, 422, 425, 429, 500, 502, 503] {
            assert_eq!(http(PARK, status, None), RELEASE, "{status}");
        }
    }

    /// Field case B27.
    #[test]
    fn a_chosen_status_is_recorded() {
        assert_eq!(http(AGAIN, 404, None), RECORD);
    }

    #[test]
    fn the_handler_has_the_last_word() {
        let for_a_minute = Disposition::RecordFor(Duration::from_mins(1));
        for ends in [AGAIN, PARK] {
            assert_eq!(http(ends, 500, Some(Disposition::Record)), RECORD);
            assert_eq!(http(ends, 504, Some(Disposition::Record)), RECORD);
            assert_eq!(http(ends, 200, Some(Disposition::Release)), RELEASE);
            assert_eq!(http(ends, 504, Some(Disposition::Release)), RELEASE);
            assert_eq!(
                http(ends, 200, Some(for_a_minute)),
                Some(Outcome::Record(Keep::For(Duration::from_mins(1))))
            );
        }
        for status in [200, 500, 504] {
            assert_eq!(http(PARK, status, Some(Disposition::Unknown)), UNKNOWN);
            assert_eq!(http(AGAIN, status, Some(Disposition::Unknown)), RELEASE);
        }
    }

    /// Field case B26.
    #[test]
    fn an_upgrade_is_never_recorded_whatever_the_handler_says() {
        for ends in [AGAIN, PARK] {
            assert_eq!(http(ends, 101, None), RELEASE);
            assert_eq!(http(ends, 101, Some(Disposition::Record)), RELEASE);
        }
    }

    /// Field case B36.
    #[test]
    fn grpc_success_is_status_0_wherever_it_stands() {
        let options = Options::default();
        let at_head = |headers: &HeaderMap| {
            let head = (StatusCode::OK, headers, None);
            AGAIN.at_head(&options, Protocol::Grpc, head)
        };
        assert_eq!(at_head(&status("0")), RECORD);
        assert_eq!(at_head(&status("13")), RELEASE);
        assert_eq!(at_head(&HeaderMap::new()), None);
        assert_eq!(AGAIN.at_end(Some(&status("0"))), Outcome::Record(KEEP));
        for trailers in [Some(status("14")), Some(status("4")), None] {
            assert_eq!(AGAIN.at_end(trailers.as_ref()), Outcome::Release);
        }
    }

    #[test]
    fn a_grpc_call_that_was_cut_is_parked_and_one_that_failed_is_not() {
        for code in ["1", "4"] {
            assert_eq!(PARK.at_end(Some(&status(code))), Outcome::Unknown, "{code}");
        }
        assert_eq!(PARK.at_end(Some(&HeaderMap::new())), Outcome::Unknown);
        assert_eq!(PARK.at_end(None), Outcome::Unknown);
        for code in ["2", "3", "9", "10", "13", "14", "16"] {
            assert_eq!(PARK.at_end(Some(&status(code))), Outcome::Release, "{code}");
        }
        assert_eq!(PARK.at_end(Some(&status("0"))), Outcome::Record(KEEP));
    }
}
