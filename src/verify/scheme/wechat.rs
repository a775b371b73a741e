//! WeChat official accounts.

use std::fmt;
use std::time::{Duration, SystemTime};

use http::request::Parts;
use sha1::{Digest, Sha1};
use subtle::ConstantTimeEq;

use crate::channel::contract::Refusal;
use crate::verify::contract::Verify;
use crate::verify::scheme::clock::Freshness;
use crate::verify::scheme::read;
use crate::verify::scheme::secret::Secret;

/// WeChat's signature in plain mode: the query parameter `signature`, the SHA-1 of the account's
/// token, `timestamp` and `nonce`, sorted and joined.
///
/// It does **not** cover the body: it shows that the sender knows the token, or has seen one signed
/// URL. [`tolerance`](Self::tolerance) bounds how long such a URL is good for. WeChat names none
/// and the default is any age. In secure mode put the layer behind the decryption.
///
/// <https://developers.weixin.qq.com/doc/offiaccount/Basic_Information/Access_Overview.html>
///
/// ```
/// use std::time::Duration;
/// use tower_idempotency::verify::WeChatSignature;
///
/// let signature = WeChatSignature::new("new token").also("old token");
/// let strict = WeChatSignature::new("token").tolerance(Duration::from_secs(300));
/// ```
#[derive(Clone)]
pub struct WeChatSignature {
    tokens: Vec<Secret>,
    fresh: Freshness,
}

impl WeChatSignature {
    /// Accepts what is signed with the account's token.
    pub fn new(token: impl Into<Secret>) -> Self {
        Self {
            tokens: vec![token.into()],
            fresh: Freshness::any_age(),
        }
    }

    /// Accepts also what is signed with this token.
    pub fn also(mut self, token: impl Into<Secret>) -> Self {
        self.tokens.push(token.into());
        self
    }

    /// How far the timestamp may be from now. Default: any distance.
    pub fn tolerance(mut self, tolerance: Duration) -> Self {
        self.fresh.set_tolerance(tolerance);
        self
    }

    /// Who says what now is. Default: the system's clock.
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.fresh.set_clock(clock);
        self
    }
}

impl Verify for WeChatSignature {
    fn verify(&self, head: &Parts, _body: &[u8]) -> Result<(), Refusal> {
        let timestamp = read::parameter(head, "timestamp")?;
        self.fresh.check(&timestamp)?;
        let nonce = read::parameter(head, "nonce")?;
        let signature = read::hex(&read::parameter(head, "signature")?);
        let signature = signature.ok_or_else(read::wrong)?;
        let fits = |token: &Secret| {
            token.bytes().is_some_and(|token| {
                let mut parts = [token, timestamp.as_bytes(), nonce.as_bytes()];
                parts.sort_unstable();
                let digest = Sha1::digest(parts.concat());
                digest.as_slice().ct_eq(&signature).into()
            })
        };
        if self.tokens.iter().any(fits) {
            Ok(())
        } else {
            Err(read::wrong())
        }
    }
}

impl fmt::Debug for WeChatSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WeChatSignature({} secrets)", self.tokens.len())
    }
}
