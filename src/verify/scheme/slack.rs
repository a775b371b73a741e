//! Slack: events, commands and interactions.

use std::time::{Duration, SystemTime};

use hmac::Hmac;
use http::HeaderName;
use http::request::Parts;
use sha2::Sha256;

use crate::channel::contract::Refusal;
use crate::verify::contract::Verify;
use crate::verify::scheme::clock::Freshness;
use crate::verify::scheme::keys::Keys;
use crate::verify::scheme::read;
use crate::verify::scheme::secret::Secret;

const SIGNATURE: HeaderName = HeaderName::from_static("x-slack-signature");
const TIMESTAMP: HeaderName = HeaderName::from_static("x-slack-request-timestamp");
const FIVE_MINUTES: Duration = Duration::from_mins(5);

/// Slack's signature: `X-Slack-Signature: v0=` and the HMAC-SHA256 of `v0:`, the timestamp, `:` and
/// the raw body under the app's signing secret.
///
/// A timestamp more than five minutes from now is refused, as Slack advises. Slack signs every
/// attempt anew, so that a late repeat passes too; a request that waited in a queue in front of
/// this service for longer does not.
///
/// <https://docs.slack.dev/authentication/verifying-requests-from-slack>
///
/// ```
/// use tower_idempotency::verify::SlackSignature;
///
/// let signature = SlackSignature::new("new signing secret").also("old signing secret");
/// ```
#[derive(Clone, Debug)]
pub struct SlackSignature {
    keys: Keys<Hmac<Sha256>>,
    fresh: Freshness,
}

impl SlackSignature {
    /// Accepts what is signed with the app's signing secret.
    pub fn new(signing_secret: impl Into<Secret>) -> Self {
        Self {
            keys: Keys::of(&signing_secret.into()),
            fresh: Freshness::within(FIVE_MINUTES),
        }
    }

    /// Accepts also what is signed with this signing secret.
    pub fn also(mut self, signing_secret: impl Into<Secret>) -> Self {
        self.keys.add(&signing_secret.into());
        self
    }

    /// How far the timestamp may be from now. Default: five minutes.
    pub fn tolerance(mut self, tolerance: Duration) -> Self {
        self.fresh.set_tolerance(tolerance);
        self
    }

    /// Who says what now is. Default: the system's clock.
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.fresh.set_clock(clock);
        self
    }
}

impl Verify for SlackSignature {
    fn verify(&self, head: &Parts, body: &[u8]) -> Result<(), Refusal> {
        let timestamp = read::header(head, &TIMESTAMP)?;
        self.fresh.check(timestamp)?;
        let signature = read::header(head, &SIGNATURE)?;
        let digest = signature.strip_prefix("v0=").and_then(read::hex);
        let digest = digest.ok_or_else(read::wrong)?;
        let parts: [&[u8]; 4] = [b"v0:", timestamp.as_bytes(), b":", body];
        if self.keys.signed(&parts, &digest) {
            Ok(())
        } else {
            Err(read::wrong())
        }
    }
}
