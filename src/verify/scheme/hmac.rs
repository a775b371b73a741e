//! A header with the HMAC of the raw body, the scheme that most senders use.

use hmac::Hmac;
use http::HeaderName;
use http::request::Parts;
use sha1::Sha1;
use sha2::Sha256;

use crate::channel::contract::Refusal;
use crate::verify::contract::Verify;
use crate::verify::scheme::keys::Keys;
use crate::verify::scheme::read;
use crate::verify::scheme::secret::Secret;

/// A header with the HMAC of the raw body; for senders that have no verifier of their own here.
///
/// Covers the body, byte for byte, and nothing else: no header, no query, no time.
/// Default: the digest in lower-case hexadecimal digits, with nothing in front.
///
/// ```
/// use http::HeaderName;
/// use tower_idempotency::verify::HmacSignature;
///
/// let header = HeaderName::from_static("x-shop-signature");
/// let plain = HmacSignature::sha256(header.clone(), "secret");
/// let rotating = HmacSignature::sha256(header, "new secret")
///     .also("old secret")
///     .prefix("sha256=")
///     .base64();
/// ```
#[derive(Clone, Debug)]
pub struct HmacSignature {
    header: HeaderName,
    prefix: &'static str,
    decode: fn(&str) -> Option<Vec<u8>>,
    keys: Digest,
}

#[derive(Clone, Debug)]
enum Digest {
    Sha256(Keys<Hmac<Sha256>>),
    Sha1(Keys<Hmac<Sha1>>),
}

impl HmacSignature {
    /// HMAC-SHA256 in `header`.
    pub fn sha256(header: HeaderName, secret: impl Into<Secret>) -> Self {
        Self::of(header, Digest::Sha256(Keys::of(&secret.into())))
    }

    /// HMAC-SHA1 in `header`, for senders that offer nothing better.
    pub fn sha1(header: HeaderName, secret: impl Into<Secret>) -> Self {
        Self::of(header, Digest::Sha1(Keys::of(&secret.into())))
    }

    /// Accepts also what is signed with `secret`, while secrets are rotated.
    pub fn also(mut self, secret: impl Into<Secret>) -> Self {
        match &mut self.keys {
            Digest::Sha256(keys) => keys.add(&secret.into()),
            Digest::Sha1(keys) => keys.add(&secret.into()),
        }
        self
    }

    /// What stands in front of the digest, such as `sha256=`.
    pub fn prefix(mut self, prefix: &'static str) -> Self {
        self.prefix = prefix;
        self
    }

    /// The digest is written in base64.
    pub fn base64(mut self) -> Self {
        self.decode = read::base64;
        self
    }

    /// Checks a signature that was found elsewhere than in the header.
    pub(crate) fn check(&self, signature: &str, body: &[u8]) -> Result<(), Refusal> {
        let digest = signature.strip_prefix(self.prefix).and_then(self.decode);
        let digest = digest.ok_or_else(|| {
            Refusal::unverified(format!("the header `{}` holds no signature", self.header))
        })?;
        let signed = match &self.keys {
            Digest::Sha256(keys) => keys.signed(&[body], &digest),
            Digest::Sha1(keys) => keys.signed(&[body], &digest),
        };
        if signed { Ok(()) } else { Err(read::wrong()) }
    }

    fn of(header: HeaderName, keys: Digest) -> Self {
        Self {
            header,
            prefix: "",
            decode: read::hex,
            keys,
        }
    }
}

impl Verify for HmacSignature {
    fn verify(&self, head: &Parts, body: &[u8]) -> Result<(), Refusal> {
        self.check(read::header(head, &self.header)?, body)
    }
}
