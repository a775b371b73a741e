//! Viber.

use http::HeaderName;
use http::request::Parts;

use crate::channel::contract::Refusal;
use crate::verify::contract::Verify;
use crate::verify::scheme::hmac::HmacSignature;
use crate::verify::scheme::read;
use crate::verify::scheme::secret::Secret;

const HEADER: HeaderName = HeaderName::from_static("x-viber-content-signature");

/// Viber's signature: `X-Viber-Content-Signature`, or the query parameter `sig` where the header
/// is absent; the HMAC-SHA256 of the raw body under the account's auth token, in hexadecimal
/// digits.
///
/// There is no timestamp: a repeat verifies, however late it comes.
///
/// <https://developers.viber.com/docs/api/rest-bot-api/#callbacks>
///
/// ```
/// use tower_idempotency::verify::ViberSignature;
///
/// let signature = ViberSignature::new("auth token");
/// let two_accounts = ViberSignature::new("auth token").also("auth token of the other");
/// ```
#[derive(Clone, Debug)]
pub struct ViberSignature(HmacSignature);

impl ViberSignature {
    /// Accepts what is signed with the account's auth token.
    pub fn new(auth_token: impl Into<Secret>) -> Self {
        Self(HmacSignature::sha256(HEADER, auth_token))
    }

    /// Accepts also what is signed with this auth token.
    pub fn also(self, auth_token: impl Into<Secret>) -> Self {
        Self(self.0.also(auth_token))
    }
}

impl Verify for ViberSignature {
    fn verify(&self, head: &Parts, body: &[u8]) -> Result<(), Refusal> {
        if head.headers.contains_key(HEADER) {
            return self.0.verify(head, body);
        }
        self.0.check(&read::parameter(head, "sig")?, body)
    }
}
