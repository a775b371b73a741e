//! How old a signature may be.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::channel::contract::Refusal;

/// How far a signature's timestamp may be from now, and who says what now is.
#[derive(Clone)]
pub(crate) struct Freshness {
    tolerance: Option<Duration>,
    clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
}

impl Freshness {
    pub(crate) fn any_age() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "a sender's timestamp can only be compared with the time of day"
        )]
        let clock = Arc::new(SystemTime::now);
        Self {
            tolerance: None,
            clock,
        }
    }

    pub(crate) fn within(tolerance: Duration) -> Self {
        let mut fresh = Self::any_age();
        fresh.set_tolerance(tolerance);
        fresh
    }

    pub(crate) fn set_tolerance(&mut self, tolerance: Duration) {
        self.tolerance = Some(tolerance);
    }

    pub(crate) fn set_clock(&mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) {
        self.clock = Arc::new(clock);
    }

    /// Checks a timestamp in seconds since 1970, written in decimal digits.
    pub(crate) fn check(&self, timestamp: &str) -> Result<(), Refusal> {
        let digits = timestamp.bytes().all(|byte| byte.is_ascii_digit());
        let sent = timestamp.parse().ok().filter(|_| digits);
        let sent = sent
            .and_then(|seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds)))
            .ok_or_else(|| Refusal::unverified("the signature's timestamp is no number"))?;
        let Some(tolerance) = self.tolerance else {
            return Ok(());
        };
        let now = (self.clock)();
        let apart = now.duration_since(sent).unwrap_or_else(|e| e.duration());
        if apart > tolerance {
            return Err(Refusal::unverified(
                "the signature's timestamp is too far from now",
            ));
        }
        Ok(())
    }
}

impl fmt::Debug for Freshness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tolerance {
            Some(tolerance) => write!(f, "within {tolerance:?}"),
            None => f.write_str("any age"),
        }
    }
}
