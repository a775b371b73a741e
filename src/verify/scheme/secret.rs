//! What only the sender and this service know.

use std::fmt;

/// A secret that is shared with a sender: a signing secret, an auth token.
///
/// `Debug` does not show it, and nothing in this crate writes it anywhere. It is made from text or
/// bytes by `into`, exactly as given: a line break at the end is a part of it.
///
/// An empty secret, such as an unset variable gives, verifies nothing: every request is refused.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// The secret's bytes, unless it is empty.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        (!self.0.is_empty()).then_some(self.0.as_slice())
    }
}

impl From<&str> for Secret {
    fn from(secret: &str) -> Self {
        Self(secret.into())
    }
}

impl From<String> for Secret {
    fn from(secret: String) -> Self {
        Self(secret.into_bytes())
    }
}

impl From<Vec<u8>> for Secret {
    fn from(secret: Vec<u8>) -> Self {
        Self(secret)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}
