//! Telegram.

use http::HeaderName;
use http::request::Parts;

use crate::channel::contract::Refusal;
use crate::verify::contract::Verify;
use crate::verify::scheme::secret::Secret;
use crate::verify::scheme::token::HeaderToken;

/// Telegram's token: `X-Telegram-Bot-Api-Secret-Token`, the `secret_token` that was given to
/// `setWebhook`. Updates are not signed.
///
/// Without it anyone may post: update ids count up by one, so that the next one is guessed.
///
/// <https://core.telegram.org/bots/api#setwebhook>
///
/// ```
/// use tower_idempotency::verify::TelegramToken;
///
/// let token = TelegramToken::new("new secret token").also("old secret token");
/// ```
#[derive(Clone, Debug)]
pub struct TelegramToken(HeaderToken);

impl TelegramToken {
    /// Accepts what carries the secret token of `setWebhook`.
    pub fn new(secret_token: impl Into<Secret>) -> Self {
        let header = HeaderName::from_static("x-telegram-bot-api-secret-token");
        Self(HeaderToken::new(header, secret_token))
    }

    /// Accepts also what carries this secret token, while tokens are rotated.
    pub fn also(self, secret_token: impl Into<Secret>) -> Self {
        Self(self.0.also(secret_token))
    }
}

impl Verify for TelegramToken {
    fn verify(&self, head: &Parts, body: &[u8]) -> Result<(), Refusal> {
        self.0.verify(head, body)
    }
}
