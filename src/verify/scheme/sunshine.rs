//! Sunshine Conversations.

use http::HeaderName;
use http::request::Parts;

use crate::channel::contract::Refusal;
use crate::verify::contract::Verify;
use crate::verify::scheme::secret::Secret;
use crate::verify::scheme::token::HeaderToken;

/// The token of Sunshine Conversations: `X-API-Key`, the webhook's shared secret. Bodies are not
/// signed.
///
/// <https://docs.smooch.io/rest/#tag/Webhooks>
///
/// ```
/// use tower_idempotency::verify::SunshineToken;
///
/// let token = SunshineToken::new("secret of one webhook").also("secret of another");
/// ```
#[derive(Clone, Debug)]
pub struct SunshineToken(HeaderToken);

impl SunshineToken {
    /// Accepts what carries the webhook's shared secret.
    pub fn new(shared_secret: impl Into<Secret>) -> Self {
        let header = HeaderName::from_static("x-api-key");
        Self(HeaderToken::new(header, shared_secret))
    }

    /// Accepts also what carries this shared secret.
    pub fn also(self, shared_secret: impl Into<Secret>) -> Self {
        Self(self.0.also(shared_secret))
    }
}

impl Verify for SunshineToken {
    fn verify(&self, head: &Parts, body: &[u8]) -> Result<(), Refusal> {
        self.0.verify(head, body)
    }
}
