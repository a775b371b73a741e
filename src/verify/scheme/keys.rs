//! Keyed hashes under several secrets at once.

use std::fmt;

use hmac::{KeyInit, Mac};

use crate::verify::scheme::secret::Secret;

/// The keyed hash `M` under each of several secrets, so that one can be rotated while the other
/// is still in use.
#[derive(Clone)]
pub(crate) struct Keys<M>(Vec<M>);

impl<M: Mac + KeyInit + Clone> Keys<M> {
    pub(crate) fn none() -> Self {
        Self(Vec::with_capacity(1))
    }

    pub(crate) fn of(secret: &Secret) -> Self {
        let mut keys = Self::none();
        keys.add(secret);
        keys
    }

    /// An empty secret adds no key: what has no key at all signs nothing.
    pub(crate) fn add(&mut self, secret: &Secret) {
        let key = secret.bytes().map(M::new_from_slice);
        self.0.extend(key.and_then(Result::ok));
    }

    /// Whether `signature` is that of `parts`, one behind the other, under any of the secrets.
    /// Compares in constant time.
    pub(crate) fn signed(&self, parts: &[&[u8]], signature: &[u8]) -> bool {
        self.0.iter().any(|key| {
            let mut mac = key.clone();
            for part in parts {
                mac.update(part);
            }
            mac.verify_slice(signature).is_ok()
        })
    }
}

impl<M> fmt::Debug for Keys<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.0.len())
    }
}
