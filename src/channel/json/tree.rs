//! What was read of a document: the places of interest, and nothing else.

use std::borrow::Cow;
use std::ops::Range;

use crate::channel::json::path::Step;
use crate::channel::json::shape::Shape;

/// The places of a document that a [`Shape`] names. All of them stand in one list, children
/// before their parents, so that reading costs no allocation per object.
#[derive(Debug)]
pub(crate) struct Tree<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) entries: Vec<Entry<'a>>,
    /// Where each entry stands in the document; empty unless asked for.
    pub(crate) spans: Vec<Range<usize>>,
    pub(crate) root: Value<'a>,
}

/// An element of an array, or a member of an object.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) value: Value<'a>,
    /// The number of the member; [`NONE`] for an element, and for a member without a name of its
    /// own in the shape.
    pub(crate) member: u32,
    /// The entry behind this one, or [`NONE`].
    pub(crate) next: u32,
}

/// No entry, no number.
pub(crate) const NONE: u32 = u32::MAX;

/// What stands at a place.
#[derive(Debug)]
pub(crate) enum Value<'a> {
    /// Something of no interest: null, false, a fraction, a kind that was not expected.
    Other,
    /// `true`.
    True,
    /// A string, or the digits of an integer.
    Text(Cow<'a, str>),
    /// An array, by its first element.
    List(u32),
    /// An object, by its first member of interest.
    Map(u32),
}

/// A place in a [`Tree`]. Every question can be asked of every place; a wrong one finds nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'t> {
    tree: &'t Tree<'t>,
    shape: &'t Shape,
    value: &'t Value<'t>,
    /// The entry that it is, or [`NONE`].
    entry: u32,
}

static NOTHING: Value<'static> = Value::Other;

impl<'t> Tree<'t> {
    /// The whole document.
    pub(crate) fn node(&'t self) -> Node<'t> {
        Node {
            tree: self,
            shape: self.shape,
            value: &self.root,
            entry: NONE,
        }
    }

    fn entry(&self, entry: u32) -> Option<&Entry<'t>> {
        self.entries.get(usize::try_from(entry).ok()?)
    }
}

impl<'t> Node<'t> {
    /// The member `name` of an object; it must be one of the shape.
    pub(crate) fn at(self, name: &str) -> Self {
        let Some((number, shape)) = self.shape.member(name) else {
            debug_assert!(false, "{name} is not in the shape");
            return self.nothing(self.shape);
        };
        self.member(number, shape)
    }

    /// The place that the members `names` lead to, one inside the other.
    pub(crate) fn down(self, names: &[&str]) -> Self {
        names.iter().fold(self, |node, name| node.at(name))
    }

    /// The text of the first of the members `names` that has one.
    pub(crate) fn first_text(self, names: &[&str]) -> Option<&'t str> {
        names.iter().find_map(|name| self.at(name).text())
    }

    /// The elements of an array, and nothing of anything else.
    pub(crate) fn elements(self) -> Children<'t> {
        match self.value {
            Value::List(first) => self.children_from(*first),
            Value::Other | Value::True | Value::Text(_) | Value::Map(_) => self.children_from(NONE),
        }
    }

    /// The members of an object in their order, by their names in the shape, and nothing of
    /// anything else. One that only a wildcard selects has an empty name.
    pub(crate) fn members(self) -> impl Iterator<Item = (&'t str, Self)> {
        let first = match self.value {
            Value::Map(first) => *first,
            Value::Other | Value::True | Value::Text(_) | Value::List(_) => NONE,
        };
        let members = self.children_from(first);
        members.map(move |child| (self.shape.name(child.number()), child))
    }

    /// The elements of an array, or the members of an object.
    pub(crate) fn children(self) -> Children<'t> {
        match self.value {
            Value::List(first) | Value::Map(first) => self.children_from(*first),
            Value::Other | Value::True | Value::Text(_) => self.children_from(NONE),
        }
    }

    /// The text that can be (a part of) an id: a string that is not blank, or the digits of an
    /// integer.
    pub(crate) fn text(self) -> Option<&'t str> {
        match self.value {
            Value::Text(text) if !text.trim_ascii().is_empty() => Some(text),
            Value::Other | Value::True | Value::Text(_) | Value::List(_) | Value::Map(_) => None,
        }
    }

    /// Whether it is `true`.
    pub(crate) fn is_true(self) -> bool {
        matches!(self.value, Value::True)
    }

    /// Whether it is an object.
    pub(crate) fn is_object(self) -> bool {
        matches!(self.value, Value::Map(_))
    }

    /// Whether it is an array.
    pub(crate) fn is_array(self) -> bool {
        matches!(self.value, Value::List(_))
    }

    /// The entry that it is: an element of an array or a member of an object.
    pub(crate) fn entry(self) -> u32 {
        self.entry
    }

    /// Where it stands in the document, if spans were asked for.
    pub(crate) fn span(self) -> Option<Range<usize>> {
        let at = usize::try_from(self.entry).ok()?;
        self.tree.spans.get(at).cloned()
    }

    /// The place that lies `steps` from here, none of which is a wildcard.
    pub(crate) fn follow(self, steps: &[Step]) -> Self {
        steps.iter().fold(self, |node, step| match step {
            Step::Name(name) => node.at(name),
            Step::Index(at) => node.element(*at),
            Step::Each => node.nothing(node.shape),
        })
    }

    /// The element at `at`, counted from the end if negative.
    pub(crate) fn element(self, at: i64) -> Self {
        let at = match usize::try_from(at) {
            Ok(at) => Some(at),
            Err(_) => usize::try_from(at.unsigned_abs())
                .ok()
                .and_then(|back| self.elements().count().checked_sub(back)),
        };
        at.and_then(|at| self.elements().nth(at))
            .unwrap_or_else(|| self.nothing(self.shape.each.as_deref().unwrap_or(self.shape)))
    }

    /// The member of that number in the shape.
    fn member(self, number: u32, shape: &'t Shape) -> Self {
        let mut at = match self.value {
            Value::Map(first) => *first,
            Value::Other | Value::True | Value::Text(_) | Value::List(_) => NONE,
        };
        while let Some(entry) = self.tree.entry(at) {
            if entry.member == number {
                return Node {
                    tree: self.tree,
                    shape,
                    value: &entry.value,
                    entry: at,
                };
            }
            at = entry.next;
        }
        self.nothing(shape)
    }

    fn number(self) -> u32 {
        self.tree.entry(self.entry).map_or(NONE, |it| it.member)
    }

    fn children_from(self, first: u32) -> Children<'t> {
        Children {
            tree: self.tree,
            shape: self.shape,
            next: first,
        }
    }

    /// A place of that shape where nothing stands.
    fn nothing(self, shape: &'t Shape) -> Self {
        Self {
            shape,
            value: &NOTHING,
            entry: NONE,
            ..self
        }
    }
}

/// The elements of an array or the members of an object, in their order.
#[derive(Clone, Debug)]
pub(crate) struct Children<'t> {
    tree: &'t Tree<'t>,
    /// The shape of the array or object.
    shape: &'t Shape,
    next: u32,
}

impl<'t> Iterator for Children<'t> {
    type Item = Node<'t>;

    fn next(&mut self) -> Option<Node<'t>> {
        let entry = self.tree.entry(self.next)?;
        let each = self.shape.each.as_deref();
        let named = || self.shape.named(entry.member);
        let shape = if entry.member == NONE { each } else { named() };
        let shape = shape.unwrap_or(self.shape);
        let node = Node {
            tree: self.tree,
            shape,
            value: &entry.value,
            entry: self.next,
        };
        self.next = entry.next;
        Some(node)
    }
}
