//! A text that stands beside a message: its scope, its conversation.

use std::borrow::Cow;

use http::request::Parts;

use crate::channel::contract::Refusal;
use crate::channel::json::path::{Path, Step};
use crate::channel::json::tree::Node;
use crate::channel::scope::Scope;
use crate::error::Error;

/// Reads a text that belongs to a message, from the head of the request or from the body.
#[derive(Clone, Debug)]
pub(crate) struct Beside {
    scope: Scope,
    place: Option<Place>,
}

/// A place in the body, from where its path leaves that of the messages.
#[derive(Clone, Debug)]
struct Place {
    path: Path,
    /// How many steps it shares with the path of the messages.
    shared: usize,
}

impl Beside {
    /// What `scope` reads, seen from the messages at `messages`.
    pub(crate) fn new(scope: Scope, messages: &Path) -> Result<Self, Error> {
        let place = match scope.path() {
            Some(path) => Some(Place::new(path, messages)?),
            None => None,
        };
        Ok(Self { scope, place })
    }

    /// The path from the root, if it is read from the body.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.place.as_ref().map(|place| &place.path)
    }

    /// The text for the message that `trail` leads to, root first.
    pub(crate) fn text<'t>(&'t self, head: &'t Parts, trail: &[Node<'t>]) -> Option<Cow<'t, str>> {
        match &self.place {
            Some(place) => place.text(trail).map(Cow::Borrowed),
            None => self.scope.look(head, b""),
        }
    }

    /// The text for the message that `trail` leads to, or a refusal that names what is missing.
    pub(crate) fn required<'t>(
        &'t self,
        head: &'t Parts,
        trail: &[Node<'t>],
    ) -> Result<Cow<'t, str>, Refusal> {
        match &self.place {
            Some(place) => match place.text(trail) {
                Some(text) => Ok(Cow::Borrowed(text)),
                None => Err(self.scope.is_missing()),
            },
            None => self.scope.of(head, b""),
        }
    }
}

impl Place {
    fn new(path: &Path, messages: &Path) -> Result<Self, Error> {
        let path = path.seen_from(messages);
        let both = path.steps().iter().zip(messages.steps());
        let shared = both.take_while(|(mine, theirs)| mine == theirs).count();
        let own = path.steps().iter().skip(shared);
        if own.into_iter().any(|step| matches!(step, Step::Each)) {
            return Err(Error::misconfigured(format!(
                "the path {path} has a wildcard that the path of the messages does not share, so it \
                 does not say which text belongs to which message"
            )));
        }
        Ok(Self { path, shared })
    }

    fn text<'t>(&self, trail: &[Node<'t>]) -> Option<&'t str> {
        let own = self.path.steps().get(self.shared..)?;
        trail.get(self.shared)?.follow(own).text()
    }
}
