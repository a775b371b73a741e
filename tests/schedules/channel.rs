//! A channel whose bodies are letters, each of them a message.

use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use tower_idempotency::channel::{Channel, Concern, Refusal, Terms};
use tower_idempotency::{Delivery, Keep, Key};

use crate::plan::Mode;

/// How many messages there are.
pub(crate) const LETTERS: usize = 2;

pub(crate) struct Letters {
    terms: Terms,
}

impl Letters {
    pub(crate) fn new(mode: Mode) -> Self {
        let mut terms = match mode {
            Mode::InLine => Terms::client("letters"),
            Mode::Batched => Terms::webhook("letters"),
        };
        terms.keep = Keep::For(Duration::from_hours(1));
        Self { terms }
    }
}

impl Channel for Letters {
    fn terms(&self, _head: &Parts) -> &Terms {
        &self.terms
    }

    fn concern(&self, _head: &Parts) -> Result<Concern, Refusal> {
        Ok(Concern::Read)
    }

    fn deliveries(&self, _head: &Parts, body: &[u8]) -> Result<Vec<Delivery>, Refusal> {
        let names = body.iter().map(|byte| char::from(*byte));
        Ok(names.map(|name| Delivery::new(key(name))).collect())
    }

    fn without(&self, _head: &Parts, body: &Bytes, gone: &[&Key]) -> Option<Bytes> {
        let stays = |byte: &u8| !gone.contains(&&key(char::from(*byte)));
        Some(body.iter().copied().filter(stays).collect())
    }
}

pub(crate) fn key(name: char) -> Key {
    Key::new("letters", "", &[name.encode_utf8(&mut [0; 4])])
}

/// The place of a message among all.
pub(crate) fn letter(key: &Key) -> usize {
    usize::from(key.id().as_bytes()[0] - b'a')
}
