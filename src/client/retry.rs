//! Whether and when a call is attempted again.

use std::time::Duration;

use http::{Request, Response, StatusCode};
use tokio::time::{Instant, Sleep, sleep_until};
use tower::retry::Policy;
use tower::retry::backoff::{
    Backoff, ExponentialBackoff, ExponentialBackoffMaker, InvalidBackoff, MakeBackoff,
};
use tower::util::rng::HasherRng;

use crate::client::answer::{Next, next};
use crate::client::body::Repeat;
use crate::client::errors::{AnyError, RetryError};
use crate::client::set_key::{HEADER, Keyed, needs_key};

/// The policy of [`tower::retry`] for servers that keep to keys.
///
/// | an attempt ends with | then |
/// | --- | --- |
/// | an error: no connection, a timeout, an answer that broke off | another attempt |
/// | 408, 425, 429, 502, 503, 504 | another attempt, after `Retry-After` if it is said |
/// | 409 with `Retry-After`: the first attempt is still running | another attempt after it |
/// | 409 without: the message is done, and its answer was not kept | handed on |
/// | 422: the key belongs to another request | handed on: never tried again, never under a new key |
/// | any other status, 500 among them | handed on |
///
/// Another attempt needs a key in the request (from [`SetKeyLayer`](super::SetKeyLayer), which
/// stands outside of `retry`, or in the header `Idempotency-Key`) or a safe method, and a body that
/// [can be sent again](Repeat). A request that lacks either is sent once, so that layers in the
/// wrong order make no duplicates.
///
/// Before the n-th repeat it waits 200 ms, doubled each time up to 10 s, less up to a half by
/// chance; never shorter than `Retry-After`, and up to a quarter longer than that. It gives up
/// after 8 attempts, or when the next one would begin more than a minute after the first, and
/// hands on the last answer or error. That minute must stay below the server's retention: what is
/// repeated after it is a new message there.
///
/// Dropping the call's future ends its attempts; whether the last one arrived is then unknown.
///
/// ```
/// use std::time::Duration;
///
/// use tower_idempotency::client::RetryPolicy;
///
/// let usual = RetryPolicy::new();
/// let patient = RetryPolicy::new()
///     .attempts(20)
///     .give_up_after(Duration::from_mins(10))
///     .backoff(Duration::from_secs(1), Duration::from_mins(1))
///     .retry_errors(|error: &reqwest::Error| !error.is_builder() && !error.is_redirect());
/// ```
#[derive(Clone, Debug)]
pub struct RetryPolicy<J = AnyError> {
    attempts: u32,
    limit: Duration,
    first_wait: Duration,
    longest_wait: Duration,
    also: Vec<StatusCode>,
    errors: J,
    keyless: bool,
    call: Call,
}

/// What is known of one call. Tower clones the policy for each.
#[derive(Clone, Debug, Default)]
struct Call {
    began: Option<Instant>,
    made: u32,
    backoff: Option<ExponentialBackoff>,
}

impl RetryPolicy {
    /// The policy as described above.
    pub fn new() -> Self {
        Self {
            attempts: 8,
            limit: Duration::from_mins(1),
            first_wait: Duration::from_millis(200),
            longest_wait: Duration::from_secs(10),
            also: Vec::new(),
            errors: AnyError,
            keyless: false,
            call: Call::default(),
        }
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::new()
    }
}

impl<J> RetryPolicy<J> {
    /// How many attempts a call has at most, the first one among them. Default: 8.
    pub fn attempts(mut self, most: u32) -> Self {
        self.attempts = most;
        self
    }

    /// How long after the call began its last attempt may begin. Default: a minute.
    pub fn give_up_after(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The wait before the first repeat, and the longest. Default: 200 ms and 10 s.
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.first_wait = first;
        self.longest_wait = longest.max(first).max(Duration::from_millis(1));
        self
    }

    /// Another status that is followed by another attempt, such as 500 where the server's
    /// failures pass. Default: none beside those above. 422 and 409 stay as they are.
    pub fn retry_status(mut self, status: StatusCode) -> Self {
        let fixed = [StatusCode::UNPROCESSABLE_ENTITY, StatusCode::CONFLICT];
        if !fixed.contains(&status) {
            self.also.push(status);
        }
        self
    }

    /// Which errors are followed by another attempt. Default: [`AnyError`].
    pub fn retry_errors<E, F>(self, judge: F) -> RetryPolicy<F>
    where
        F: Fn(&E) -> bool + Clone,
    {
        RetryPolicy {
            attempts: self.attempts,
            limit: self.limit,
            first_wait: self.first_wait,
            longest_wait: self.longest_wait,
            also: self.also,
            errors: judge,
            keyless: self.keyless,
            call: self.call,
        }
    }

    /// Retries requests without a key, too: for a server that finds the message's id in the body
    /// or in a header of its own. Default: they are sent once.
    pub fn id_elsewhere(mut self) -> Self {
        self.keyless = true;
        self
    }

    fn next<R, E>(&self, result: &Result<Response<R>, E>) -> Next
    where
        J: RetryError<E>,
    {
        match result {
            Ok(answer) => next(answer.status(), answer.headers(), &self.also),
            Err(error) if self.errors.retry_error(error) => Next::Again,
            Err(_) => Next::HandOn,
        }
    }

    /// When the next attempt begins.
    fn begins(&mut self, now: Instant, next: Next) -> Option<Instant> {
        let waited = now + self.wait()?.mul_f64(rand::random_range(0.5..1.0));
        match next {
            Next::HandOn => None,
            Next::Again => Some(waited),
            Next::After(time) => {
                let asked = time.mul_f64(rand::random_range(1.0..1.25));
                now.checked_add(asked).map(|asked| asked.max(waited))
            }
        }
    }

    /// The full wait before the next attempt. The backoff's own jitter is not used: it ends where
    /// the longest wait is reached.
    fn wait(&mut self) -> Option<Duration> {
        if self.call.backoff.is_none() {
            let maker = self.maker();
            self.call.backoff = maker.ok().map(|mut maker| maker.make_backoff());
        }
        let sleep = self.call.backoff.as_mut()?.next_backoff();
        Some(sleep.deadline() - Instant::now())
    }

    fn maker(&self) -> Result<ExponentialBackoffMaker, InvalidBackoff> {
        ExponentialBackoffMaker::new(self.first_wait, self.longest_wait, 0.0, HasherRng::new())
    }
}

impl<B, R, E, J> Policy<Request<B>, Response<R>, E> for RetryPolicy<J>
where
    B: Repeat,
    J: RetryError<E>,
{
    type Future = Sleep;

    fn retry(
        &mut self,
        _request: &mut Request<B>,
        result: &mut Result<Response<R>, E>,
    ) -> Option<Sleep> {
        self.call.made += 1;
        let next = self.next(result);
        if next == Next::HandOn || self.call.made >= self.attempts {
            return None;
        }
        let begins = self.begins(Instant::now(), next)?;
        let began = self.call.began?;
        (begins.duration_since(began) <= self.limit).then(|| sleep_until(begins))
    }

    /// Tower calls it before each attempt: before the first on the service's policy, whose clone is
    /// the call's, and then on the call's.
    fn clone_request(&mut self, request: &Request<B>) -> Option<Request<B>> {
        if self.call.made == 0 {
            self.call.began = Some(Instant::now());
        }
        let safe_to_repeat = self.keyless || !needs_key(request.method()) || has_key(request);
        if !safe_to_repeat {
            return None;
        }
        let mut copy = Request::new(request.body().repeat()?);
        *copy.method_mut() = request.method().clone();
        *copy.uri_mut() = request.uri().clone();
        *copy.version_mut() = request.version();
        *copy.headers_mut() = request.headers().clone();
        *copy.extensions_mut() = request.extensions().clone();
        Some(copy)
    }
}

fn has_key<B>(request: &Request<B>) -> bool {
    request.extensions().get::<Keyed>().is_some() || request.headers().contains_key(HEADER)
}
