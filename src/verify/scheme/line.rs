//! LINE.

use http::HeaderName;
use http::request::Parts;

use crate::channel::contract::Refusal;
use crate::verify::contract::Verify;
use crate::verify::scheme::hmac::HmacSignature;
use crate::verify::scheme::secret::Secret;

/// LINE's signature: `X-Line-Signature`, the base64 of the HMAC-SHA256 of the raw body under the
/// channel secret.
///
/// There is no timestamp: a redelivered event verifies, however late it comes.
///
/// <https://developers.line.biz/en/docs/messaging-api/verify-webhook-signature/>
///
/// ```
/// use tower_idempotency::verify::LineSignature;
///
/// let signature = LineSignature::new("new channel secret").also("old channel secret");
/// ```
#[derive(Clone, Debug)]
pub struct LineSignature(HmacSignature);

impl LineSignature {
    /// Accepts what is signed with the channel secret.
    pub fn new(channel_secret: impl Into<Secret>) -> Self {
        let header = HeaderName::from_static("x-line-signature");
        Self(HmacSignature::sha256(header, channel_secret).base64())
    }

    /// Accepts also what is signed with this channel secret.
    pub fn also(self, channel_secret: impl Into<Secret>) -> Self {
        Self(self.0.also(channel_secret))
    }
}

impl Verify for LineSignature {
    fn verify(&self, head: &Parts, body: &[u8]) -> Result<(), Refusal> {
        self.0.verify(head, body)
    }
}
