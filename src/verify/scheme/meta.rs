//! WhatsApp, Messenger and Instagram.

use http::HeaderName;
use http::request::Parts;

use crate::channel::contract::Refusal;
use crate::verify::contract::Verify;
use crate::verify::scheme::hmac::HmacSignature;
use crate::verify::scheme::secret::Secret;

/// Meta's signature: `X-Hub-Signature-256: sha256=` and the HMAC-SHA256 of the raw body under the
/// app secret.
///
/// Meta signs the body with its non-ASCII characters escaped, so only the bytes as they came
/// verify. There is no timestamp: a repeat carries the same signature, however late it comes.
///
/// <https://developers.facebook.com/docs/messenger-platform/webhooks#validate-payloads>
///
/// ```
/// use tower_idempotency::verify::MetaSignature;
///
/// let signature = MetaSignature::new("app secret");
/// let rotating = MetaSignature::new("new app secret").also("old app secret");
/// ```
#[derive(Clone, Debug)]
pub struct MetaSignature(HmacSignature);

impl MetaSignature {
    /// Accepts what is signed with the app secret.
    pub fn new(app_secret: impl Into<Secret>) -> Self {
        let header = HeaderName::from_static("x-hub-signature-256");
        Self(HmacSignature::sha256(header, app_secret).prefix("sha256="))
    }

    /// Accepts also what is signed with this app secret: another app on the same endpoint, or the
    /// old secret while it is reset.
    pub fn also(self, app_secret: impl Into<Secret>) -> Self {
        Self(self.0.also(app_secret))
    }
}

impl Verify for MetaSignature {
    fn verify(&self, head: &Parts, body: &[u8]) -> Result<(), Refusal> {
        self.0.verify(head, body)
    }
}
