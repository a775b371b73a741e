//! Standard Webhooks.

use std::time::{Duration, SystemTime};

use ed25519_dalek::{Signature, VerifyingKey};
use hmac::Hmac;
use http::HeaderName;
use http::request::Parts;
use sha2::Sha256;

use crate::channel::contract::Refusal;
use crate::error::Error;
use crate::verify::contract::Verify;
use crate::verify::scheme::clock::Freshness;
use crate::verify::scheme::keys::Keys;
use crate::verify::scheme::read;
use crate::verify::scheme::secret::Secret;

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
const FIVE_MINUTES: Duration = Duration::from_mins(5);

/// The signature of Standard Webhooks: `webhook-signature` over `webhook-id`, `.`,
/// `webhook-timestamp`, `.` and the raw body.
///
/// A key that begins with `whsec_` (or with neither prefix) is a shared secret and checks `v1`
/// signatures, HMAC-SHA256; one that begins with `whpk_` is a public key and checks `v1a`
/// signatures, Ed25519. Any one signature of the header's list that fits will do.
///
/// A timestamp more than five minutes from now is refused, as the libraries of the standard do.
/// It is the attempt's, not the event's, so that a repeat days later passes too.
///
/// <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>
///
/// ```
/// use tower_idempotency::verify::StandardSignature;
///
/// # fn main() -> Result<(), tower_idempotency::Error> {
/// let signature = StandardSignature::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?
///     .also("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct StandardSignature {
    shared: Keys<Hmac<Sha256>>,
    public: Vec<VerifyingKey>,
    fresh: Freshness,
}

impl StandardSignature {
    /// Accepts what is signed under this key, as the sender shows it.
    ///
    /// # Errors
    /// If it is no base64, or no Ed25519 public key where it begins with `whpk_`.
    pub fn new(key: &str) -> Result<Self, Error> {
        let nothing = Self {
            shared: Keys::none(),
            public: Vec::new(),
            fresh: Freshness::within(FIVE_MINUTES),
        };
        nothing.also(key)
    }

    /// Accepts also what is signed under this key.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn also(mut self, key: &str) -> Result<Self, Error> {
        // The cause is not kept: it would quote a byte of the secret.
        let wrong = || Error::misconfigured("a webhook key is no base64, or no Ed25519 key");
        let (public, text) = match key.strip_prefix("whpk_") {
            Some(text) => (true, text),
            None => (false, key.strip_prefix("whsec_").unwrap_or(key)),
        };
        let bytes = read::base64(text).ok_or_else(wrong)?;
        if public {
            let key = VerifyingKey::try_from(bytes.as_slice()).map_err(|_| wrong())?;
            self.public.push(key);
        } else {
            self.shared.add(&Secret::from(bytes));
        }
        Ok(self)
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

    fn fits(&self, parts: &[&[u8]], signature: &str) -> bool {
        match signature.split_once(',') {
            Some(("v1", digest)) => {
                read::base64(digest).is_some_and(|digest| self.shared.signed(parts, &digest))
            }
            Some(("v1a", bytes)) => {
                let signature = read::base64(bytes).and_then(|b| Signature::from_slice(&b).ok());
                signature.is_some_and(|signature| {
                    let signed = parts.concat();
                    let fits = |key: &VerifyingKey| key.verify_strict(&signed, &signature).is_ok();
                    self.public.iter().any(fits)
                })
            }
            _ => false,
        }
    }
}

impl Verify for StandardSignature {
    fn verify(&self, head: &Parts, body: &[u8]) -> Result<(), Refusal> {
        let id = read::header(head, &ID)?;
        let timestamp = read::header(head, &TIMESTAMP)?;
        self.fresh.check(timestamp)?;
        let signatures = read::header(head, &SIGNATURE)?;
        let parts: [&[u8]; 5] = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body];
        let mut listed = signatures.split(' ').take(MOST_SIGNATURES);
        if listed.any(|signature| self.fits(&parts, signature)) {
            Ok(())
        } else {
            Err(read::wrong())
        }
    }
}

/// Each signature costs a pass over the body, so the sender must not choose how many.
const MOST_SIGNATURES: usize = 8;
