//! GitHub.

use http::HeaderName;
use http::request::Parts;

use crate::channel::contract::Refusal;
use crate::verify::contract::Verify;
use crate::verify::scheme::hmac::HmacSignature;
use crate::verify::scheme::secret::Secret;

/// GitHub's signature: `X-Hub-Signature-256: sha256=` and the HMAC-SHA256 of the raw body under
/// the webhook's secret.
///
/// There is no timestamp: a delivery that is sent again by hand carries the same signature. The
/// delivery's id is in a header that is not signed.
///
/// <https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries>
///
/// ```
/// use tower_idempotency::verify::GitHubSignature;
///
/// let signature = GitHubSignature::new("new secret").also("old secret");
/// ```
#[derive(Clone, Debug)]
pub struct GitHubSignature(HmacSignature);

impl GitHubSignature {
    /// Accepts what is signed with the webhook's secret.
    pub fn new(secret: impl Into<Secret>) -> Self {
        let header = HeaderName::from_static("x-hub-signature-256");
        Self(HmacSignature::sha256(header, secret).prefix("sha256="))
    }

    /// Accepts also what is signed with this secret, while secrets are rotated.
    pub fn also(self, secret: impl Into<Secret>) -> Self {
        Self(self.0.also(secret))
    }
}

impl Verify for GitHubSignature {
    fn verify(&self, head: &Parts, body: &[u8]) -> Result<(), Refusal> {
        self.0.verify(head, body)
    }
}
