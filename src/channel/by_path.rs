//! Several channels under one layer, told apart by the path.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use http::request::Parts;

use crate::channel::contract::{Channel, Concern, OnUnknown, Refusal, Terms};
use crate::channel::path::path_of;
use crate::delivery::Delivery;
use crate::key::Key;

/// Mounts channels by path, so that one layer and one store serve them all.
///
/// A prefix matches whole segments: `/webhooks/line` matches that path and what is below it, and
/// not `/webhooks/liner`. One that ends in `/` matches what begins with it. The longest match
/// speaks; a path that nothing matches passes untouched.
///
/// Paths are compared as the client sent them, byte by byte: mount channels where the router's
/// own routes are, and mind a router that rewrites paths (`//`, `%77`) before it matches. Inside of
/// a nested router see [`OriginalPath`](crate::channel::OriginalPath).
///
/// Keys hold the channel's name and not the path: one channel under two paths knows a message that
/// comes on both.
///
/// ```
/// use tower_idempotency::channel::{ByPath, IdempotencyKey, Scope};
///
/// let channels = ByPath::new()
///     .at("/chat/", IdempotencyKey::scoped_by(Scope::header("x-user")))
///     .at("/orders", IdempotencyKey::scoped_by(Scope::header("x-user")).named("orders").required());
/// ```
pub struct ByPath {
    /// Longest prefix first.
    mounts: Vec<Mount>,
    elsewhere: Terms,
}

struct Mount {
    prefix: Cow<'static, str>,
    channel: Box<dyn Channel>,
}

impl ByPath {
    /// No channels yet: every request passes.
    pub fn new() -> Self {
        Self {
            mounts: Vec::new(),
            elsewhere: Terms::webhook("none"),
        }
    }

    /// Adds `channel` for `prefix` and what is below it; an earlier channel there is replaced.
    ///
    /// A prefix without a leading `/` is given one.
    pub fn at(mut self, prefix: impl Into<Cow<'static, str>>, channel: impl Channel) -> Self {
        let mut prefix = prefix.into();
        if !prefix.starts_with('/') {
            prefix = format!("/{prefix}").into();
        }
        self.mounts.retain(|mount| mount.prefix != prefix);
        let channel = Box::new(channel);
        self.mounts.push(Mount { prefix, channel });
        self.mounts
            .sort_by_key(|mount| std::cmp::Reverse(mount.prefix.len()));
        self
    }

    fn find(&self, head: &Parts) -> Option<&dyn Channel> {
        let path = path_of(head);
        let mount = self.mounts.iter().find(|mount| mount.matches(path))?;
        Some(&*mount.channel)
    }
}

impl Mount {
    fn matches(&self, path: &str) -> bool {
        match path.strip_prefix(&*self.prefix) {
            Some(rest) => self.prefix.ends_with('/') || rest.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }
}

impl Default for ByPath {
    fn default() -> Self {
        Self::new()
    }
}

impl Channel for ByPath {
    fn terms(&self, head: &Parts) -> &Terms {
        match self.find(head) {
            Some(channel) => channel.terms(head),
            None => &self.elsewhere,
        }
    }

    fn all_terms(&self) -> Vec<&Terms> {
        let mounts = self.mounts.iter();
        mounts.flat_map(|mount| mount.channel.all_terms()).collect()
    }

    fn concern(&self, head: &Parts) -> Result<Concern, Refusal> {
        match self.find(head) {
            Some(channel) => channel.concern(head),
            None => Ok(Concern::Pass),
        }
    }

    fn verify(&self, head: &Parts, body: &[u8]) -> Result<(), Refusal> {
        match self.find(head) {
            Some(channel) => channel.verify(head, body),
            None => Ok(()),
        }
    }

    fn is_verifying(&self, head: &Parts) -> bool {
        self.find(head)
            .is_some_and(|channel| channel.is_verifying(head))
    }

    fn deliveries(&self, head: &Parts, body: &[u8]) -> Result<Vec<Delivery>, Refusal> {
        match self.find(head) {
            Some(channel) => channel.deliveries(head, body),
            None => Ok(Vec::new()),
        }
    }

    fn on_unknown(&self, head: &Parts) -> OnUnknown {
        self.find(head)
            .map_or_else(OnUnknown::default, |channel| channel.on_unknown(head))
    }

    fn without(&self, head: &Parts, body: &Bytes, gone: &[&Key]) -> Option<Bytes> {
        self.find(head)?.without(head, body, gone)
    }
}

impl fmt::Debug for ByPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefixes = self.mounts.iter().map(|mount| &*mount.prefix);
        f.write_str("ByPath ")?;
        f.debug_list().entries(prefixes).finish()
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;
    use crate::channel::header::IdempotencyKey;
    use crate::channel::path::OriginalPath;

    fn named(name: &str) -> IdempotencyKey {
        IdempotencyKey::unscoped().named(name)
    }

    fn head(path: &str) -> Parts {
        let request = Request::post(path).header("idempotency-key", "a").body(());
        request.unwrap().into_parts().0
    }

    fn channel_at(channels: &ByPath, path: &str) -> String {
        let head = head(path);
        let terms = channels.terms(&head).channel.to_string();
        let deliveries = channels.deliveries(&head, b"").unwrap();
        let concern = channels.concern(&head).unwrap();
        match deliveries.first() {
            Some(delivery) => assert_eq!(
                (delivery.key().channel(), concern),
                (&*terms, Concern::Read)
            ),
            None => assert_eq!((&*terms, concern), ("none", Concern::Pass)),
        }
        terms
    }

    #[test]
    fn the_longest_prefix_of_whole_segments_speaks() {
        let channels = ByPath::new()
            .at("/a", named("a"))
            .at("/a/b", named("ab"))
            .at("/c/", named("c"))
            .at("d", named("d"));
        for (path, channel) in [
            ("/a", "a"),
            ("/a/", "a"),
            ("/a/bc", "a"),
            ("/a/b?x=1", "ab"),
            ("/a/b/c", "ab"),
            ("/ab", "none"),
            ("/c", "none"),
            ("/c/", "c"),
            ("/c/1", "c"),
            ("/d", "d"),
            ("/", "none"),
        ] {
            assert_eq!(channel_at(&channels, path), channel, "{path}");
        }
    }

    #[test]
    fn the_root_takes_what_is_left() {
        let channels = ByPath::new().at("/", named("rest")).at("/a", named("a"));
        for (path, channel) in [("/", "rest"), ("/b", "rest"), ("/a", "a")] {
            assert_eq!(channel_at(&channels, path), channel, "{path}");
        }
    }

    #[test]
    fn a_second_channel_at_a_path_replaces_the_first() {
        let channels = ByPath::new().at("/a", named("old")).at("/a", named("new"));
        assert_eq!(channel_at(&channels, "/a"), "new");
    }

    #[test]
    fn the_path_is_the_one_that_the_client_asked_for() {
        let channels = ByPath::new().at("/api/chat", named("chat"));
        let mut head = head("/chat");
        assert_eq!(channels.concern(&head), Ok(Concern::Pass));
        head.extensions
            .insert(OriginalPath::new("/api/chat".parse().unwrap()));
        assert_eq!(channels.concern(&head), Ok(Concern::Read));
    }
}
