//! A header with a token that only the sender and this service know.

use std::fmt;

use http::HeaderName;
use http::request::Parts;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use crate::channel::contract::Refusal;
use crate::verify::contract::Verify;
use crate::verify::scheme::read;
use crate::verify::scheme::secret::Secret;

/// A header with a token that only the sender and this service know; for senders that have no
/// verifier of their own here.
///
/// Covers who is speaking and nothing of what is said: whoever learns the token can send anything.
///
/// ```
/// use http::HeaderName;
/// use tower_idempotency::verify::HeaderToken;
///
/// let token = HeaderToken::new(HeaderName::from_static("x-shop-token"), "new token")
///     .also("old token");
/// ```
#[derive(Clone, Debug)]
pub struct HeaderToken {
    header: HeaderName,
    tokens: Tokens,
}

impl HeaderToken {
    /// Accepts what carries the token in `header`.
    pub fn new(header: HeaderName, token: impl Into<Secret>) -> Self {
        Self {
            header,
            tokens: Tokens::of(&token.into()),
        }
    }

    /// Accepts also what carries this token, while tokens are rotated.
    pub fn also(mut self, token: impl Into<Secret>) -> Self {
        self.tokens.add(&token.into());
        self
    }
}

impl Verify for HeaderToken {
    fn verify(&self, head: &Parts, _body: &[u8]) -> Result<(), Refusal> {
        self.tokens.check(read::header(head, &self.header)?)
    }
}

/// Tokens, kept as their SHA-256: what is compared has one length, whatever the token's.
#[derive(Clone)]
pub(crate) struct Tokens(Vec<[u8; 32]>);

impl Tokens {
    pub(crate) fn of(token: &Secret) -> Self {
        let mut tokens = Self(Vec::with_capacity(1));
        tokens.add(token);
        tokens
    }

    /// An empty token is none: nothing is equal to it.
    pub(crate) fn add(&mut self, token: &Secret) {
        self.0.extend(token.bytes().map(hash));
    }

    pub(crate) fn check(&self, shown: &str) -> Result<(), Refusal> {
        let shown = hash(shown.as_bytes());
        let equal = self.0.iter().fold(Choice::from(0), |equal, token| {
            equal | token.as_slice().ct_eq(&shown)
        });
        if equal.into() {
            Ok(())
        } else {
            Err(Refusal::unverified("the token is another"))
        }
    }
}

fn hash(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.0.len())
    }
}
