//! Matrix application services.

use http::header::AUTHORIZATION;
use http::request::Parts;

use crate::channel::contract::Refusal;
use crate::verify::contract::Verify;
use crate::verify::scheme::read;
use crate::verify::scheme::secret::Secret;
use crate::verify::scheme::token::Tokens;

/// A homeserver's token: `Authorization: Bearer` and the `hs_token` of the registration, or the
/// query parameter `access_token` that old homeservers send. Bodies are not signed.
///
/// Without it anyone may post: transaction ids count up by one, so that the next one is guessed.
///
/// <https://spec.matrix.org/latest/application-service-api/#authorization>
///
/// ```
/// use tower_idempotency::verify::MatrixToken;
///
/// let token = MatrixToken::new("new hs_token").also("old hs_token");
/// ```
#[derive(Clone, Debug)]
pub struct MatrixToken(Tokens);

impl MatrixToken {
    /// Accepts what carries the registration's `hs_token`.
    pub fn new(hs_token: impl Into<Secret>) -> Self {
        Self(Tokens::of(&hs_token.into()))
    }

    /// Accepts also what carries this `hs_token`.
    pub fn also(mut self, hs_token: impl Into<Secret>) -> Self {
        self.0.add(&hs_token.into());
        self
    }
}

impl Verify for MatrixToken {
    fn verify(&self, head: &Parts, _body: &[u8]) -> Result<(), Refusal> {
        if !head.headers.contains_key(AUTHORIZATION) {
            return self.0.check(&read::parameter(head, "access_token")?);
        }
        match read::header(head, &AUTHORIZATION)?.split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => self.0.check(token),
            _ => Err(Refusal::unverified(
                "the header `authorization` is no bearer token",
            )),
        }
    }
}
