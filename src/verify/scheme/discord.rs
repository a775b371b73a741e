//! Discord: interactions and webhook events.

use std::time::{Duration, SystemTime};

use ed25519_dalek::{Signature, VerifyingKey};
use http::HeaderName;
use http::request::Parts;

use crate::channel::contract::Refusal;
use crate::error::Error;
use crate::verify::contract::Verify;
use crate::verify::scheme::clock::Freshness;
use crate::verify::scheme::read;

const SIGNATURE: HeaderName = HeaderName::from_static("x-signature-ed25519");
const TIMESTAMP: HeaderName = HeaderName::from_static("x-signature-timestamp");

/// Discord's signature: `X-Signature-Ed25519` over `X-Signature-Timestamp` and the raw body, under
/// the application's public key. There is no secret.
///
/// Discord probes endpoints with bad signatures and removes those that accept them, so its
/// handshake is verified like any other request. It names no tolerance and this verifier has none,
/// so that a repeated event passes; [`tolerance`](Self::tolerance) sets one.
///
/// <https://docs.discord.com/developers/interactions/overview#validating-security-request-headers>
///
/// ```
/// use tower_idempotency::verify::DiscordSignature;
///
/// # fn main() -> Result<(), tower_idempotency::Error> {
/// let public_key = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8";
/// let signature = DiscordSignature::new(public_key)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct DiscordSignature {
    keys: Vec<VerifyingKey>,
    fresh: Freshness,
}

impl DiscordSignature {
    /// Accepts what is signed for the application with this public key, in hexadecimal digits.
    ///
    /// # Errors
    /// If it is no Ed25519 public key.
    pub fn new(public_key: &str) -> Result<Self, Error> {
        let nothing = Self {
            keys: Vec::with_capacity(1),
            fresh: Freshness::any_age(),
        };
        nothing.also(public_key)
    }

    /// Accepts also what is signed for the application with this public key.
    ///
    /// # Errors
    /// If it is no Ed25519 public key.
    pub fn also(mut self, public_key: &str) -> Result<Self, Error> {
        let wrong = || Error::misconfigured("the application's public key is no Ed25519 key");
        let bytes = hex::decode(public_key).map_err(|e| wrong().because(e))?;
        let key = VerifyingKey::try_from(bytes.as_slice()).map_err(|e| wrong().because(e))?;
        self.keys.push(key);
        Ok(self)
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

impl Verify for DiscordSignature {
    fn verify(&self, head: &Parts, body: &[u8]) -> Result<(), Refusal> {
        let timestamp = read::header(head, &TIMESTAMP)?;
        self.fresh.check(timestamp)?;
        let signature = read::hex(read::header(head, &SIGNATURE)?);
        let signature = signature.and_then(|bytes| Signature::from_slice(&bytes).ok());
        let signature = signature.ok_or_else(read::wrong)?;
        let signed = [timestamp.as_bytes(), body].concat();
        let fits = |key: &VerifyingKey| key.verify_strict(&signed, &signature).is_ok();
        if self.keys.iter().any(fits) {
            Ok(())
        } else {
            Err(read::wrong())
        }
    }
}
