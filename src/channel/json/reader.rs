//! What a channel with JSON bodies says, and what follows from it.

use std::collections::{HashMap, HashSet};
use std::fmt;

use bytes::Bytes;
use http::request::Parts;

use crate::channel::contract::{Concern, Reason, Refusal, Terms};
use crate::channel::json::cut::cut;
use crate::channel::json::fault::{Fault, Spans};
use crate::channel::json::found::Found;
use crate::channel::json::read::read;
use crate::channel::json::shape::Shape;
use crate::channel::json::tree::Node;
use crate::delivery::Delivery;
use crate::key::Key;

/// What every channel with JSON bodies has.
#[derive(Clone)]
pub(crate) struct Base {
    pub(crate) terms: Terms,
    pub(crate) shape: Shape,
}

impl Base {
    /// The defaults of a channel of this crate, and the places that it reads.
    pub(crate) fn new<P: AsRef<str>>(terms: Terms, reads: &[P]) -> Self {
        Self {
            terms,
            shape: Shape::reading(reads),
        }
    }
}

impl fmt::Debug for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.terms, f)
    }
}

/// Finds the messages in a JSON body.
pub(crate) trait Reader {
    /// The channel's defaults, and what it reads.
    fn base(&self) -> &Base;

    /// The places to read of the body of a request with this head.
    fn shape(&self, _head: &Parts) -> &Shape {
        &self.base().shape
    }

    /// Adds the messages in `root` to `found`, in order of appearance.
    ///
    /// # Errors
    /// A [`Refusal`] if the request is wrong and must not run.
    fn find(&self, head: &Parts, root: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal>;

    /// What becomes of a body that is no JSON, as it shows at that line and column. By default
    /// the handler answers it.
    ///
    /// # Errors
    /// A [`Refusal`] if the request must not run.
    fn not_json(&self, _line: usize, _column: usize) -> Result<(), Refusal> {
        Ok(())
    }
}

/// The scope that the body names at `place`, called `what`.
///
/// # Errors
/// [`Reason::MissingScope`] if it does not.
pub(crate) fn scope_at<'t>(place: Node<'t>, what: &str) -> Result<&'t str, Refusal> {
    let missing = || Refusal::new(Reason::MissingScope, format!("the body has no `{what}`"));
    place.text().ok_or_else(missing)
}

/// Whether a request concerns a channel whose messages are posted: all but safe methods do.
pub(crate) fn concern(head: &Parts) -> Concern {
    if head.method.is_safe() {
        Concern::Pass
    } else {
        Concern::Read
    }
}

/// The deliveries in a request.
pub(crate) fn deliveries(
    reader: &impl Reader,
    head: &Parts,
    body: &[u8],
) -> Result<Vec<Delivery>, Refusal> {
    let mut found = Found::new(&reader.base().terms.channel, Spans::Skip);
    match read(body, reader.shape(head), Spans::Skip) {
        Ok(tree) => reader.find(head, tree.node(), &mut found)?,
        Err(Fault::NotJson(line, column)) => reader.not_json(line, column)?,
        Err(fault @ (Fault::Repeated(_) | Fault::Control)) => return Err(fault.into()),
    }
    Ok(found.unique())
}

/// The body without the deliveries in `gone`.
///
/// An element in which several deliveries stand goes if all of them do; if only some do, the body
/// cannot be cut.
pub(crate) fn without(
    reader: &impl Reader,
    head: &Parts,
    body: &Bytes,
    gone: &[&Key],
) -> Option<Bytes> {
    let tree = read(body, reader.shape(head), Spans::Keep).ok()?;
    let mut found = Found::new(&reader.base().terms.channel, Spans::Keep);
    reader.find(head, tree.node(), &mut found).ok()?;
    let gone: HashSet<_> = gone.iter().copied().collect();
    let mut goes = HashMap::new();
    for (key, entry) in found.places() {
        let this = gone.contains(key);
        if *goes.entry(entry).or_insert(this) != this {
            return None;
        }
    }
    let entries = goes.into_iter().filter(|(_, goes)| *goes);
    cut(body, &tree, entries.map(|(entry, _)| entry).collect())
}

/// Makes a [`Reader`] a channel.
macro_rules! by_reader {
    ($channel:ty) => {
        impl $crate::channel::contract::Channel for $channel {
            fn terms(&self, _head: &::http::request::Parts) -> &$crate::channel::contract::Terms {
                &$crate::channel::json::reader::Reader::base(self).terms
            }

            fn concern(
                &self,
                head: &::http::request::Parts,
            ) -> Result<$crate::channel::contract::Concern, $crate::channel::contract::Refusal>
            {
                Ok($crate::channel::json::reader::concern(head))
            }

            fn deliveries(
                &self,
                head: &::http::request::Parts,
                body: &[u8],
            ) -> Result<Vec<$crate::delivery::Delivery>, $crate::channel::contract::Refusal> {
                $crate::channel::json::reader::deliveries(self, head, body)
            }

            fn without(
                &self,
                head: &::http::request::Parts,
                body: &::bytes::Bytes,
                gone: &[&$crate::key::Key],
            ) -> Option<::bytes::Bytes> {
                $crate::channel::json::reader::without(self, head, body, gone)
            }
        }
    };
}

pub(crate) use by_reader;

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;
    use crate::channel::json::found::Message;

    /// Two messages in each element.
    struct Twos(Base);

    impl Reader for Twos {
        fn base(&self) -> &Base {
            &self.0
        }

        fn find(&self, _: &Parts, root: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
            let of_both = |it| ["a", "b"].map(|name| (it, name));
            for (element, name) in root.elements().flat_map(of_both) {
                found.add_whole(element, [element.at(name).text()], Message::default())?;
            }
            Ok(())
        }
    }

    fn left_without(gone: &[&str]) -> Option<Bytes> {
        let twos = Twos(Base::new(Terms::webhook("twos"), &["$[*].a", "$[*].b"]));
        let head = Request::post("/").body(()).unwrap().into_parts().0;
        let body = Bytes::from_static(br#"[{"a":1,"b":2},{"a":3,"b":4}]"#);
        let keys: Vec<_> = gone.iter().map(|id| Key::new("twos", "", &[id])).collect();
        without(&twos, &head, &body, &keys.iter().collect::<Vec<_>>())
    }

    #[test]
    fn an_element_goes_only_with_all_its_messages() {
        let second: &[u8] = br#"[{"a":3,"b":4}]"#;
        assert_eq!(left_without(&["1", "2"]).as_deref(), Some(second));
        assert_eq!(
            left_without(&["1", "2", "3", "4"]).as_deref(),
            Some(&b"[]"[..])
        );
        for some in [&["1"][..], &["2"], &["1", "2", "4"]] {
            assert_eq!(left_without(some), None, "{some:?}");
        }
    }
}
