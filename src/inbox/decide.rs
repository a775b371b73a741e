//! The inbox's decisions, as pure functions over plain options.

use std::time::Duration;

use http::StatusCode;
use http::header::{HeaderMap, HeaderName, RETRY_AFTER};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use crate::channel::contract::{Reply, Terms};
use crate::error::Error;
use crate::inbox::failure::Failure;
use crate::policy::Disposition;
use crate::record::Keep;
use crate::store::queue::turn::{Behind, Ended};

/// The inbox's options, as plain values.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) lease: Duration,
    pub(crate) concurrency: usize,
    pub(crate) attempts: u32,
    pub(crate) attempt_limit: Duration,
    pub(crate) backoff: Backoff,
    pub(crate) behind: Behind,
    pub(crate) keep: Option<Keep>,
    pub(crate) requests: Requests,
    pub(crate) look_every: Duration,
    pub(crate) stop_limit: Duration,
    pub(crate) left_out: Vec<HeaderName>,
    pub(crate) given_up_on: Vec<StatusCode>,
    pub(crate) replies: Replies,
    pub(crate) loss: Loss,
    pub(crate) measure_every: Option<Duration>,
}

/// How long a message waits for its next attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    pub(crate) first: Duration,
    pub(crate) longest: Duration,
}

/// What becomes of the request of a message that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requests {
    Go,
    /// It stays with its key.
    Stay,
}

/// Where the reply to a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replies {
    /// Into the answer of the handler, which nobody gets here.
    InTheAnswer,
    /// The handler sends it itself.
    Elsewhere,
}

/// Whether waiting messages may go with the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    Refused,
    Accepted,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            concurrency: 256,
            attempts: 10,
            attempt_limit: Duration::from_mins(1),
            backoff: Backoff {
                first: Duration::from_secs(1),
                longest: Duration::from_mins(5),
            },
            behind: Behind::Wait,
            keep: None,
            requests: Requests::Go,
            look_every: Duration::from_millis(500),
            stop_limit: Duration::from_secs(20),
            left_out: Vec::new(),
            given_up_on: Vec::new(),
            replies: Replies::InTheAnswer,
            loss: Loss::Refused,
            measure_every: None,
        }
    }
}

/// What one attempt came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    Handled,
    Failed {
        /// When the handler wants it again, if it says so.
        again: Option<Duration>,
        fault: String,
    },
    Refused {
        fault: String,
    },
}

/// What an answer says. `now` is for a `Retry-After` that is a date.
pub(crate) fn came(
    plan: &Plan,
    (status, headers): (StatusCode, &HeaderMap),
    (failure, disposition): (Option<Failure>, Option<Disposition>),
    now: OffsetDateTime,
) -> Came {
    let fault = || format!("answered {status}");
    match (failure, disposition) {
        (Some(Failure::Never), _) => Came::Refused { fault: fault() },
        (Some(Failure::Later(after)), _) => Came::Failed {
            again: Some(after),
            fault: fault(),
        },
        (None, Some(Disposition::Record | Disposition::RecordFor(_))) => Came::Handled,
        (None, None) if status.is_success() => Came::Handled,
        (None, None) if plan.given_up_on.contains(&status) => Came::Refused { fault: fault() },
        // Who would run it again must say so: that is to redrive it.
        (None, Some(Disposition::Unknown)) => Came::Refused {
            fault: format!("{}, its outcome unknown", fault()),
        },
        (None, Some(Disposition::Release) | None) => Came::Failed {
            again: retry_after(headers, now),
            fault: fault(),
        },
    }
}

/// `Retry-After`: seconds, or a date (RFC 9110, section 10.2.3).
fn retry_after(headers: &HeaderMap, now: OffsetDateTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = OffsetDateTime::parse(text, &Rfc2822).ok()?;
    Some(Duration::try_from(date - now).unwrap_or_default())
}

/// How a message ends after an attempt. `jitter` from 0 to 1.
pub(crate) fn ended(plan: &Plan, attempt: u32, came: Came, jitter: f64) -> Ended {
    match came {
        Came::Handled if plan.requests == Requests::Stay => Ended::Kept,
        Came::Handled => Ended::Done,
        Came::Refused { fault } => Ended::Dead { attempt, fault },
        Came::Failed { fault, .. } if attempt >= plan.attempts => Ended::Dead { attempt, fault },
        Came::Failed { again, fault } => Ended::Later {
            after: again
                .unwrap_or_else(|| pause(plan.backoff, attempt, jitter))
                .min(LONGEST),
            attempt,
            fault,
            behind: plan.behind,
        },
    }
}

/// A message that was taken after its last attempt: its workers died with it, each time.
pub(crate) fn spent(plan: &Plan, attempt: u32, last: Option<&str>) -> Option<Ended> {
    (attempt > plan.attempts).then(|| {
        let last = last.map_or_else(String::new, |last| format!("; before that it {last}"));
        Ended::Dead {
            attempt: attempt - 1,
            fault: format!("its worker went away during the last attempt{last}"),
        }
    })
}

/// The pause before the next attempt: doubled with each, spread over its upper half.
fn pause(backoff: Backoff, attempt: u32, jitter: f64) -> Duration {
    let doubled = 1_u32
        .checked_shl(attempt.saturating_sub(1))
        .unwrap_or(u32::MAX);
    let full = backoff.first.saturating_mul(doubled).min(backoff.longest);
    full.mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 2.0)
}

/// No handler puts a message off for longer.
const LONGEST: Duration = Duration::from_hours(30 * 24);

/// How long a message's key is kept. Where nothing is said: the life of its conversation and a
/// week, or a day longer than the sender goes on repeating.
pub(crate) fn keep(plan: &Plan, terms: &Terms) -> Keep {
    let repeated = terms.horizon.unwrap_or_default() + Duration::from_hours(24);
    plan.keep.unwrap_or_else(|| Keep::Conversation {
        idle: Duration::from_hours(7 * 24).max(repeated),
    })
}

/// Whether an inbox can be made of these at all.
pub(crate) fn check(plan: &Plan, all: &[&Terms], is_durable: bool) -> Result<(), Error> {
    if !is_durable && plan.loss == Loss::Refused {
        return Err(Error::misconfigured(
            "the store keeps its messages in memory only: messages that were acknowledged would \
             go with the process; `may_lose_waiting` accepts that",
        ));
    }
    let replying = all.iter().find(|terms| terms.reply == Reply::Record);
    if let Some(terms) = replying
        && plan.replies == Replies::InTheAnswer
    {
        return Err(Error::misconfigured(format!(
            "the reply to a message of the channel `{}` is the body of its answer, which is lost \
             where the answer goes out first; `reply_elsewhere` says that the handler sends it \
             by itself",
            terms.channel
        )));
    }
    let outlives = |terms: &&&Terms| terms.horizon > Some(keep(plan, terms).at_least());
    let longer = all.iter().find(outlives);
    if let Some(terms) = longer {
        return Err(Error::misconfigured(format!(
            "the channel `{}` repeats its messages for longer than their keys are kept: a late \
             repeat would be handled again",
            terms.channel
        )));
    }
    for (what, time) in [
        ("lease", plan.lease),
        ("limit of an attempt", plan.attempt_limit),
    ] {
        if time.is_zero() {
            return Err(Error::misconfigured(format!("the {what} is zero")));
        }
    }
    if plan.concurrency == 0 || plan.attempts == 0 {
        return Err(Error::misconfigured(
            "an inbox needs at least one place and one attempt",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    fn failed(again: Option<u64>) -> Came {
        Came::Failed {
            again: again.map(Duration::from_secs),
            fault: "answered".to_owned(),
        }
    }

    fn answer(
        status: u16,
        retry: Option<&str>,
        said: (Option<Failure>, Option<Disposition>),
    ) -> Came {
        let mut headers = HeaderMap::new();
        if let Some(retry) = retry {
            headers.insert(RETRY_AFTER, retry.parse().unwrap());
        }
        let plan = Plan {
            given_up_on: vec![StatusCode::GONE],
            ..Plan::default()
        };
        let head = (StatusCode::from_u16(status).unwrap(), &headers);
        match came(&plan, head, said, NOW) {
            Came::Handled => Came::Handled,
            Came::Failed { again, .. } => Came::Failed {
                again,
                fault: "answered".to_owned(),
            },
            Came::Refused { .. } => Came::Refused {
                fault: "answered".to_owned(),
            },
        }
    }

    #[test]
    fn a_2xx_is_handled_and_nothing_else_is() {
        for status in [200, 202, 204] {
            assert_eq!(answer(status, None, (None, None)), Came::Handled);
        }
        for status in [301, 400, 404, 422, 429, 500, 503] {
            assert_eq!(answer(status, None, (None, None)), failed(None), "{status}");
        }
        let gone = answer(410, None, (None, None));
        assert!(matches!(gone, Came::Refused { .. }), "{gone:?}");
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let retry = |text| answer(503, Some(text), (None, None));
        assert_eq!(retry("120"), failed(Some(120)));
        assert_eq!(retry("Thu, 01 Jan 1970 00:01:00 GMT"), failed(Some(60)));
        assert_eq!(retry("Wed, 31 Dec 1969 00:00:00 GMT"), failed(Some(0)));
        assert_eq!(retry("soon"), failed(None));
    }

    #[test]
    fn the_handler_has_the_last_word() {
        let later = Some(Failure::Later(Duration::from_secs(7)));
        assert_eq!(answer(200, Some("9"), (later, None)), failed(Some(7)));
        for said in [
            (Some(Failure::Never), None),
            (None, Some(Disposition::Unknown)),
        ] {
            assert!(matches!(answer(200, None, said), Came::Refused { .. }));
        }
        assert_eq!(
            answer(500, None, (None, Some(Disposition::Record))),
            Came::Handled
        );
        assert_eq!(
            answer(200, None, (None, Some(Disposition::Release))),
            failed(None)
        );
    }

    #[test]
    fn a_message_dies_at_its_last_attempt() {
        let plan = Plan::default();
        let end = |attempt| ended(&plan, attempt, failed(None), 0.0);
        assert!(matches!(end(9), Ended::Later { attempt: 9, .. }));
        assert!(matches!(end(10), Ended::Dead { attempt: 10, .. }));
        assert_eq!(spent(&plan, 10, None), None);
        assert!(matches!(
            spent(&plan, 11, None),
            Some(Ended::Dead { attempt: 10, .. })
        ));
    }

    #[test]
    fn pauses_double_up_to_a_bound_and_are_spread() {
        let backoff = Plan::default().backoff;
        let pause = |attempt, jitter| pause(backoff, attempt, jitter).as_millis();
        assert_eq!([1, 2, 5].map(|n| pause(n, 0.0)), [1_000, 2_000, 16_000]);
        assert_eq!([pause(60, 0.0), pause(1, 1.0)], [300_000, 500]);
    }

    #[test]
    fn what_cannot_work_is_refused() {
        let terms = Terms::webhook("hook");
        let check = |plan: &Plan, terms: &Terms, durable| check(plan, &[terms], durable);
        let plan = Plan::default();
        assert!(check(&plan, &terms, true).is_ok());
        assert!(check(&plan, &terms, false).unwrap_err().is_misconfigured());
        let lossy = Plan {
            loss: Loss::Accepted,
            ..plan.clone()
        };
        assert!(check(&lossy, &terms, false).is_ok());
        let replying = Terms::client("chat");
        assert!(
            check(&plan, &replying, true)
                .unwrap_err()
                .is_misconfigured()
        );
        let elsewhere = Plan {
            replies: Replies::Elsewhere,
            ..plan.clone()
        };
        assert!(check(&elsewhere, &replying, true).is_ok());
        let mut late = terms.clone();
        late.horizon = Some(Duration::from_hours(24 * 8));
        assert!(check(&plan, &late, true).is_ok());
        let short = Plan {
            keep: Some(Keep::CONVERSATION),
            ..plan.clone()
        };
        assert!(check(&short, &late, true).unwrap_err().is_misconfigured());
        let none = Plan {
            attempts: 0,
            ..plan
        };
        assert!(check(&none, &terms, true).unwrap_err().is_misconfigured());
    }
}
