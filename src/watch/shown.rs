//! Keys as traces show them.

use std::fmt;

use crate::key::{Digits, Key};

/// Whether traces tell keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeysInLogs {
    /// As 32 hexadecimal digits: the first half of the key's [digest](Key::digest), by which its
    /// row is found in the store's table.
    ///
    /// It hides ids from who reads the log. It is no secret: who knows a key can tell its digest.
    #[default]
    Hashed,
    /// In the clear, as `channel/scope/id`. Ids can name persons, and a guessed id suppresses a
    /// message.
    Plain,
}

/// A key as traces show it. Nothing is computed unless it is written.
pub(crate) struct Shown<'a>(pub(crate) &'a Key, pub(crate) KeysInLogs);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(key, keys) = self;
        match keys {
            KeysInLogs::Hashed => {
                let digest = key.digest();
                let (half, _) = digest.split_at(16);
                Digits(half).fmt(f)
            }
            KeysInLogs::Plain => write!(f, "{}/{}/{}", key.channel(), key.scope(), key.id()),
        }
    }
}
