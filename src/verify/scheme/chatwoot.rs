//! Chatwoot.

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

const SIGNATURE: HeaderName = HeaderName::from_static("x-chatwoot-signature");
const TIMESTAMP: HeaderName = HeaderName::from_static("x-chatwoot-timestamp");

/// Chatwoot's signature: `X-Chatwoot-Signature: sha256=` and the HMAC-SHA256 of the timestamp, `.`
/// and the raw body under the webhook's secret.
///
/// Chatwoot names no tolerance and this verifier has none, so that a request that waited in a
/// queue passes; [`tolerance`](Self::tolerance) sets one. Versions of Chatwoot that send no
/// signature cannot be verified.
///
/// <https://github.com/chatwoot/chatwoot/blob/develop/lib/webhooks/trigger.rb>
///
/// ```
/// use std::time::Duration;
/// use tower_idempotency::verify::ChatwootSignature;
///
/// let signature = ChatwootSignature::new("webhook secret");
/// let strict = ChatwootSignature::new("webhook secret").tolerance(Duration::from_secs(300));
/// ```
#[derive(Clone, Debug)]
pub struct ChatwootSignature {
    keys: Keys<Hmac<Sha256>>,
    fresh: Freshness,
}

impl ChatwootSignature {
    /// Accepts what is signed with the webhook's secret.
    pub fn new(secret: impl Into<Secret>) -> Self {
        Self {
            keys: Keys::of(&secret.into()),
            fresh: Freshness::any_age(),
        }
    }

    /// Accepts also what is signed with this secret: each webhook and agent bot has its own.
    pub fn also(mut self, secret: impl Into<Secret>) -> Self {
        self.keys.add(&secret.into());
        self
    }

    /// How far the timestamp may be from now. Default: any distance.
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

impl Verify for ChatwootSignature {
    fn verify(&self, head: &Parts, body: &[u8]) -> Result<(), Refusal> {
        let timestamp = read::header(head, &TIMESTAMP)?;
        self.fresh.check(timestamp)?;
        let signature = read::header(head, &SIGNATURE)?;
        let digest = signature.strip_prefix("sha256=").and_then(read::hex);
        let digest = digest.ok_or_else(read::wrong)?;
        let parts: [&[u8]; 3] = [timestamp.as_bytes(), b".", body];
        if self.keys.signed(&parts, &digest) {
            Ok(())
        } else {
            Err(read::wrong())
        }
    }
}
