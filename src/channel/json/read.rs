//! Reads the places of interest out of a document, and checks all of it on the way.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::Deserializer as Json;
use serde_json::value::RawValue;

use crate::channel::contract::{Reason, Refusal};
use crate::channel::json::shape::Shape;
use crate::channel::json::tree::{Entry, NONE, Tree, Value};

/// Why a document could not be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is no JSON: the line and column where that shows.
    NotJson(usize, usize),
    /// A member of interest occurs twice in one object.
    Repeated(Box<str>),
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        let detail = match fault {
            Fault::NotJson(line, column) => {
                format!("the body is no JSON: line {line}, column {column}")
            }
            Fault::Repeated(name) => {
                format!("the member {name:?} occurs twice in one object of the body")
            }
        };
        Self::new(Reason::MalformedBody, detail)
    }
}

/// Whether the tree also knows where its entries stand in the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spans {
    /// It does not: one pass.
    Skip,
    /// It does: each level of arrays is read once more.
    Keep,
}

/// Reads what `shape` names out of `body`.
///
/// The whole body is checked. What is skipped is skipped without recursion, so that no nesting is
/// too deep; what is read is no deeper than the shape. Members repeated at a place of interest
/// are a fault: readers disagree on which of them counts.
pub(crate) fn read<'a>(body: &'a [u8], shape: &'a Shape, spans: Spans) -> Result<Tree<'a>, Fault> {
    let text = str::from_utf8(body).map_err(|error| not_utf8(body, error.valid_up_to()))?;
    let mut reading = Reading {
        entries: Vec::new(),
        spans: Vec::new(),
        repeated: None,
        keep: spans,
        start: text.as_ptr().addr(),
    };
    let mut json = Json::from_str(text);
    let root = Place {
        shape,
        reading: &mut reading,
    }
    .deserialize(&mut json);
    match root.and_then(|root| json.end().map(|()| root)) {
        Ok(root) => Ok(Tree {
            shape,
            entries: reading.entries,
            spans: reading.spans,
            root,
        }),
        Err(error) => Err(match reading.repeated {
            Some(name) => Fault::Repeated(name),
            None => Fault::NotJson(error.line(), error.column()),
        }),
    }
}

fn not_utf8(body: &[u8], at: usize) -> Fault {
    let before = body.get(..at).unwrap_or_default();
    let line = memchr::memchr_iter(b'\n', before).count();
    let start = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
    Fault::NotJson(line + 1, at - start + 1)
}

/// The tree that is being read.
struct Reading<'a> {
    entries: Vec<Entry<'a>>,
    spans: Vec<Range<usize>>,
    repeated: Option<Box<str>>,
    keep: Spans,
    /// The address of the document, from which spans are counted.
    start: usize,
}

/// A place to read, as `shape` says.
struct Place<'s, 'r, 'a> {
    shape: &'s Shape,
    reading: &'r mut Reading<'a>,
}

impl<'s, 'a> Place<'s, '_, 'a> {
    /// A value whose text may be wanted, by its first character.
    fn raw<E: serde::de::Error>(self, raw: &'a RawValue) -> Result<Value<'a>, E> {
        let text = raw.get();
        match text.as_bytes() {
            [b'"', ..] => string(text).map(Value::Text).map_err(E::custom),
            b"true" => Ok(Value::True),
            [b'-' | b'0'..=b'9', rest @ ..] if rest.iter().all(u8::is_ascii_digit) => {
                Ok(Value::Text(Cow::Borrowed(text)))
            }
            [b'{' | b'[', ..] if self.shape.is_branch() => {
                let mut json = Json::from_str(text);
                json.deserialize_any(self).map_err(E::custom)
            }
            _ => Ok(Value::Other),
        }
    }

    fn within(&mut self, shape: &'s Shape) -> Place<'s, '_, 'a> {
        Place {
            shape,
            reading: self.reading,
        }
    }

    /// An element of an array, with its span if asked for.
    fn element<S: SeqAccess<'a>>(
        &mut self,
        shape: &'s Shape,
        seq: &mut S,
    ) -> Result<Option<(Value<'a>, Range<usize>)>, S::Error> {
        match self.reading.keep {
            Spans::Skip => {
                let value = seq.next_element_seed(self.within(shape))?;
                Ok(value.map(|value| (value, 0..0)))
            }
            Spans::Keep => {
                let Some(raw) = seq.next_element::<&RawValue>()? else {
                    return Ok(None);
                };
                let start = raw.get().as_ptr().addr() - self.reading.start;
                let span = start..start + raw.get().len();
                let mut json = Json::from_str(raw.get());
                let value = self.within(shape).deserialize(&mut json);
                value
                    .map(|value| Some((value, span)))
                    .map_err(S::Error::custom)
            }
        }
    }

    fn repeated<E: serde::de::Error>(&mut self, name: &str) -> E {
        self.reading.repeated = Some(name.into());
        E::custom("a member is repeated")
    }
}

impl<'a> DeserializeSeed<'a> for Place<'_, '_, 'a> {
    type Value = Value<'a>;

    fn deserialize<D: Deserializer<'a>>(self, json: D) -> Result<Value<'a>, D::Error> {
        if self.shape.text {
            let raw = <&RawValue>::deserialize(json)?;
            self.raw(raw)
        } else {
            json.deserialize_any(self)
        }
    }
}

impl<'a> Visitor<'a> for Place<'_, '_, 'a> {
    type Value = Value<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'a>>(mut self, mut map: A) -> Result<Value<'a>, A::Error> {
        let mut chain = Chain::new();
        let mut others: Option<HashSet<String>> = None;
        while let Some(name) = map.next_key_seed(Name(self.shape))? {
            let (member, shape) = match name {
                Member::Known(member, _) if chain.has(member, &self.reading.entries) => {
                    let name = self.shape.name(member).to_owned();
                    return Err(self.repeated(&name));
                }
                Member::Known(member, shape) => (member, shape),
                Member::Selected(name, shape) => {
                    let twice = others.get_or_insert_default().replace(name);
                    twice.map_or(Ok(()), |name| Err(self.repeated(&name)))?;
                    (NONE, shape)
                }
                Member::Other => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            let value = map.next_value_seed(self.within(shape))?;
            chain.push(value, member, 0..0, self.reading)?;
        }
        Ok(Value::Map(chain.first))
    }

    fn visit_seq<A: SeqAccess<'a>>(mut self, mut seq: A) -> Result<Value<'a>, A::Error> {
        let Some(each) = self.shape.each.as_deref() else {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Value::Other);
        };
        let mut chain = Chain::new();
        while let Some((value, span)) = self.element(each, &mut seq)? {
            chain.push(value, NONE, span, self.reading)?;
        }
        Ok(Value::List(chain.first))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Value<'a>, E> {
        Ok(Value::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Value<'a>, E> {
        Ok(Value::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Value<'a>, E> {
        Ok(Value::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value<'a>, E> {
        Ok(Value::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<Value<'a>, E> {
        Ok(Value::Other)
    }

    fn visit_unit<E>(self) -> Result<Value<'a>, E> {
        Ok(Value::Other)
    }
}

/// The children of one array or object, linked in their order.
struct Chain {
    first: u32,
    last: u32,
}

impl Chain {
    fn new() -> Self {
        Self {
            first: NONE,
            last: NONE,
        }
    }

    fn push<'a, E: serde::de::Error>(
        &mut self,
        value: Value<'a>,
        member: u32,
        span: Range<usize>,
        reading: &mut Reading<'a>,
    ) -> Result<(), E> {
        let at = u32::try_from(reading.entries.len()).map_err(E::custom)?;
        match entry(&mut reading.entries, self.last) {
            Some(last) => last.next = at,
            None => self.first = at,
        }
        self.last = at;
        reading.entries.push(Entry {
            value,
            member,
            next: NONE,
        });
        if reading.keep == Spans::Keep {
            reading.spans.push(span);
        }
        Ok(())
    }

    fn has(&self, member: u32, entries: &[Entry<'_>]) -> bool {
        let mut at = self.first;
        while let Some(entry) = usize::try_from(at).ok().and_then(|at| entries.get(at)) {
            if entry.member == member {
                return true;
            }
            at = entry.next;
        }
        false
    }
}

fn entry<'e, 'a>(entries: &'e mut [Entry<'a>], at: u32) -> Option<&'e mut Entry<'a>> {
    entries.get_mut(usize::try_from(at).ok()?)
}

/// The name of a member, looked up in a shape.
struct Name<'s>(&'s Shape);

enum Member<'s> {
    /// One that the shape names, by its number.
    Known(u32, &'s Shape),
    /// One that only a wildcard selects.
    Selected(String, &'s Shape),
    /// One of no interest.
    Other,
}

impl<'a, 's> DeserializeSeed<'a> for Name<'s> {
    type Value = Member<'s>;

    fn deserialize<D: Deserializer<'a>>(self, json: D) -> Result<Member<'s>, D::Error> {
        json.deserialize_str(self)
    }
}

impl<'s> Visitor<'_> for Name<'s> {
    type Value = Member<'s>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Member<'s>, E> {
        let mut known = (0..).zip(&self.0.members);
        Ok(match known.find(|(_, (known, _))| **known == *name) {
            Some((number, (_, shape))) => Member::Known(number, shape),
            None => match &self.0.each {
                Some(each) => Member::Selected(name.to_owned(), each),
                None => Member::Other,
            },
        })
    }
}

fn string(quoted: &str) -> Result<Cow<'_, str>, serde_json::Error> {
    let inner = quoted.get(1..quoted.len() - 1).unwrap_or_default();
    if memchr::memchr(b'\\', inner.as_bytes()).is_some() {
        return serde_json::from_str(quoted).map(Cow::Owned);
    }
    Ok(Cow::Borrowed(inner))
}
