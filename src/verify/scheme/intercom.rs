//! Intercom.

use http::HeaderName;
use http::request::Parts;

use crate::channel::contract::Refusal;
use crate::verify::contract::Verify;
use crate::verify::scheme::hmac::HmacSignature;
use crate::verify::scheme::secret::Secret;

/// Intercom's signature: `X-Hub-Signature: sha1=` and the HMAC-SHA1 of the raw body under the
/// app's client secret.
///
/// There is no timestamp: a repeat verifies, however late it comes.
///
/// <https://developers.intercom.com/docs/webhooks/setting-up-webhooks#signed-notifications>
///
/// ```
/// use tower_idempotency::verify::IntercomSignature;
///
/// let signature = IntercomSignature::new("new client secret").also("old client secret");
/// ```
#[derive(Clone, Debug)]
pub struct IntercomSignature(HmacSignature);

impl IntercomSignature {
    /// Accepts what is signed with the app's client secret.
    pub fn new(client_secret: impl Into<Secret>) -> Self {
        let header = HeaderName::from_static("x-hub-signature");
        Self(HmacSignature::sha1(header, client_secret).prefix("sha1="))
    }

    /// Accepts also what is signed with this client secret.
    pub fn also(self, client_secret: impl Into<Secret>) -> Self {
        Self(self.0.also(client_secret))
    }
}

impl Verify for IntercomSignature {
    fn verify(&self, head: &Parts, body: &[u8]) -> Result<(), Refusal> {
        self.0.verify(head, body)
    }
}
