//! What makes two requests the same message.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

/// (channel, scope, id): the name of one message.
///
/// Two keys are equal only if all three parts are; where the parts are cut is a part of the key.
/// A clone is a reference count.
///
/// `Debug` shows a short digest and not the id, since ids can name persons and a guessed id
/// suppresses a message; the accessors give the text.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    text: Arc<str>,
    scope_at: usize,
    id_at: usize,
}

impl Key {
    /// A key whose id is made of `parts`.
    ///
    /// One part that holds neither `|` nor `\` is the id, verbatim. Several parts are joined by
    /// `|`; a `|` or `\` inside a part is written `\|` or `\\`, so that no two lists of parts give
    /// the same id.
    pub fn new<P: AsRef<str>>(channel: &str, scope: &str, parts: &[P]) -> Self {
        let id: usize = parts.iter().map(|part| part.as_ref().len() + 1).sum();
        let mut buffer = String::with_capacity(channel.len() + scope.len() + id);
        Self::written_in(&mut buffer, channel, scope, parts)
    }

    /// [`new`](Self::new), put together in a `buffer` that is used again: one allocation per key.
    pub(crate) fn written_in<P: AsRef<str>>(
        buffer: &mut String,
        channel: &str,
        scope: &str,
        parts: &[P],
    ) -> Self {
        buffer.clear();
        buffer.push_str(channel);
        buffer.push_str(scope);
        for (i, part) in parts.iter().enumerate() {
            if i > 0 {
                buffer.push('|');
            }
            push_escaped(buffer, part.as_ref());
        }
        Self {
            text: buffer.as_str().into(),
            scope_at: channel.len(),
            id_at: channel.len() + scope.len(),
        }
    }

    /// The key with these texts, as the accessors gave them and as a store's rows show them.
    pub fn restored(channel: &str, scope: &str, id: &str) -> Self {
        Self {
            text: [channel, scope, id].concat().into(),
            scope_at: channel.len(),
            id_at: channel.len() + scope.len(),
        }
    }

    /// The channel's name, such as `whatsapp`.
    pub fn channel(&self) -> &str {
        self.text.get(..self.scope_at).unwrap_or_default()
    }

    /// The namespace within the channel: an account, a user. Empty for an unscoped channel.
    pub fn scope(&self) -> &str {
        self.text.get(self.scope_at..self.id_at).unwrap_or_default()
    }

    /// The id within the scope.
    pub fn id(&self) -> &str {
        self.text.get(self.id_at..).unwrap_or_default()
    }

    /// SHA-256 over the parts, each behind its length as eight big-endian bytes.
    ///
    /// The same in every process and version, so that a store can use it (or its first 16 bytes)
    /// as its primary key. Costs about 0.1 µs.
    pub fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for part in [self.channel(), self.scope(), self.id()] {
            hash.update(length_bytes(part));
            hash.update(part);
        }
        hash.finalize().into()
    }
}

/// The length of a part as it goes into a digest.
pub(crate) fn length_bytes(part: impl AsRef<[u8]>) -> [u8; 8] {
    u64::try_from(part.as_ref().len())
        .unwrap_or(u64::MAX)
        .to_be_bytes()
}

fn push_escaped(text: &mut String, part: &str) {
    // Every byte is looked at, which is faster than to stop at the first.
    let special = |any, byte| any | matches!(byte, b'|' | b'\\');
    if !part.bytes().fold(false, special) {
        text.push_str(part);
        return;
    }
    for c in part.chars() {
        if matches!(c, '|' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = self.digest();
        let (begin, _) = digest.split_at(4);
        write!(f, "Key({}:{})", self.channel(), Digits(begin))
    }
}

/// Bytes as people read them: two hexadecimal digits each.
pub(crate) struct Digits<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Digits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The conversation that a message belongs to, named within a channel and scope.
///
/// A store keeps rows as long as their conversation lives, and forgets by conversation.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Conversation(Key);

impl Conversation {
    /// The conversation `id` in a scope of a channel.
    pub fn new(channel: &str, scope: &str, id: &str) -> Self {
        Self(Key::new(channel, scope, &[id]))
    }

    /// [`new`](Self::new), put together in a `buffer` that is used again.
    pub(crate) fn written_in(buffer: &mut String, channel: &str, scope: &str, id: &str) -> Self {
        Self(Key::written_in(buffer, channel, scope, &[id]))
    }

    /// The conversation with these texts, as the accessors gave them.
    pub(crate) fn restored(channel: &str, scope: &str, id: &str) -> Self {
        Self(Key::restored(channel, scope, id))
    }

    /// The channel's name.
    pub fn channel(&self) -> &str {
        self.0.channel()
    }

    /// The namespace within the channel.
    pub fn scope(&self) -> &str {
        self.0.scope()
    }

    /// The conversation's id within the scope.
    pub fn id(&self) -> &str {
        self.0.id()
    }

    /// The digest of channel, scope and id, made as [`Key::digest`] is.
    pub fn digest(&self) -> [u8; 32] {
        self.0.digest()
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Conversation({:?})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_are_readable_and_one_part_is_verbatim() {
        let key = Key::new("whatsapp", "1065", &["status", "wamid.A", "read"]);
        assert_eq!(
            (key.channel(), key.scope(), key.id()),
            ("whatsapp", "1065", "status|wamid.A|read")
        );
        assert_eq!(Key::new("web", "", &["abc"]).id(), "abc");
    }

    #[test]
    fn where_the_parts_are_cut_is_part_of_the_key() {
        let key = |c, s, i| Key::new(c, s, &[i]);
        assert_ne!(key("ab", "c", "d"), key("a", "bc", "d"));
        assert_ne!(key("a", "bc", "d"), key("a", "b", "cd"));
        assert_ne!(key("ab", "c", "d").digest(), key("a", "bc", "d").digest());
    }

    /// Stores find rows by it.
    ///
    /// Field case P52.
    #[test]
    fn a_keys_digest_is_the_same_in_every_version() {
        let digest = Key::new("whatsapp", "106", &["wamid.A"]).digest();
        let head = u128::from_be_bytes(*digest.first_chunk().unwrap());
        assert_eq!(head, 0x4d69_52ce_b68d_0721_e41e_5e8d_ef3e_ef53);
    }

    #[test]
    fn debug_does_not_show_the_id() {
        let shown = format!("{:?}", Key::new("web", "alice", &["secret-id"]));
        assert!(
            !shown.contains("secret-id") && !shown.contains("alice"),
            "{shown}"
        );
    }

    proptest! {
        #[test]
        fn keys_are_equal_only_if_all_parts_are(
            a in prop::collection::vec("[ab|\\\\]{0,3}", 1..4),
            b in prop::collection::vec("[ab|\\\\]{0,3}", 1..4),
        ) {
            prop_assert_eq!(Key::new("c", "s", &a) == Key::new("c", "s", &b), a == b);
        }
    }
}
