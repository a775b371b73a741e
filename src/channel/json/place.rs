//! Reads one place of a document, and what is of interest below it.

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

use crate::channel::json::fault::{Fault, Spans};
use crate::channel::json::shape::Shape;
use crate::channel::json::tree::{Entry, NONE, Value};

/// A message of interest is seldom shorter, for each place that is read of it.
const BYTES_PER_ENTRY: usize = 64;

/// As many as are set aside before any is read.
const ENTRIES: usize = 1024;

/// How texts are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// As values, which is fastest. A number is read whole only if it fits 64 bits.
    Parsed,
    /// As they stand there, which costs a second look.
    Raw,
}

/// Whether the numbers of interest were read with all of their digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digits {
    Kept,
    Lost,
}

/// The tree that is being read.
pub(crate) struct Reading<'a> {
    pub(crate) entries: Vec<Entry<'a>>,
    pub(crate) positions: Vec<Range<usize>>,
    pub(crate) fault: Option<Fault>,
    pub(crate) digits: Digits,
    leaves: Leaves,
    spans: Spans,
    /// The address of the document, from which positions are counted.
    start: usize,
}

impl<'a> Reading<'a> {
    /// Nothing of `text` yet.
    pub(crate) fn new(text: &'a str, leaves: Leaves, spans: Spans) -> Self {
        Self {
            entries: Vec::with_capacity((text.len() / BYTES_PER_ENTRY).min(ENTRIES)),
            positions: Vec::new(),
            fault: None,
            digits: Digits::Kept,
            leaves,
            spans,
            start: text.as_ptr().addr(),
        }
    }
}

/// A place to read, as `shape` says.
pub(crate) struct Place<'s, 'r, 'a> {
    shape: &'s Shape,
    reading: &'r mut Reading<'a>,
}

impl<'s, 'r, 'a> Place<'s, 'r, 'a> {
    /// The place of a document that `shape` is about.
    pub(crate) fn new(shape: &'s Shape, reading: &'r mut Reading<'a>) -> Self {
        Self { shape, reading }
    }
}

impl<'s, 'a> Place<'s, '_, 'a> {
    /// A value whose text is wanted, by its first character.
    fn raw<E: serde::de::Error>(self, raw: &'a RawValue) -> Result<Value<'a>, E> {
        let text = raw.get();
        match text.as_bytes() {
            [b'"', ..] => self.string(text).map(Value::Text),
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
        match self.reading.spans {
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

    /// The text of a string, as it stands there in its quotes.
    fn string<E: serde::de::Error>(self, quoted: &'a str) -> Result<Cow<'a, str>, E> {
        let inner = quoted.get(1..quoted.len() - 1).unwrap_or_default();
        if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
            return Ok(Cow::Borrowed(inner));
        }
        let text: String = serde_json::from_str(quoted).map_err(E::custom)?;
        self.unescaped(text)
    }

    /// A text that was written with escapes, the only way to write a control character.
    fn unescaped<E: serde::de::Error>(self, text: String) -> Result<Cow<'a, str>, E> {
        if text.contains(|c: char| c.is_ascii_control()) {
            self.reading.fault = Some(Fault::Control);
            return Err(E::custom("a control character"));
        }
        Ok(Cow::Owned(text))
    }

    /// A text, if one is wanted here.
    fn text(&self, text: impl FnOnce() -> Cow<'a, str>) -> Value<'a> {
        if self.shape.text {
            Value::Text(text())
        } else {
            Value::Other
        }
    }

    fn repeated<E: serde::de::Error>(&mut self, name: &str) -> E {
        self.reading.fault = Some(Fault::Repeated(name.into()));
        E::custom("a member is repeated")
    }
}

impl<'a> DeserializeSeed<'a> for Place<'_, '_, 'a> {
    type Value = Value<'a>;

    fn deserialize<D: Deserializer<'a>>(self, json: D) -> Result<Value<'a>, D::Error> {
        if self.shape.text && self.reading.leaves == Leaves::Raw {
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

    fn visit_bool<E>(self, value: bool) -> Result<Value<'a>, E> {
        Ok(if value { Value::True } else { Value::Other })
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value<'a>, E> {
        Ok(self.text(|| value.to_string().into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value<'a>, E> {
        Ok(self.text(|| value.to_string().into()))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value<'a>, E> {
        if self.shape.text {
            self.reading.digits = Digits::Lost;
        }
        Ok(Value::Other)
    }

    fn visit_borrowed_str<E>(self, value: &'a str) -> Result<Value<'a>, E> {
        Ok(self.text(|| value.into()))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value<'a>, E> {
        if self.shape.text {
            return self.unescaped(value.to_owned()).map(Value::Text);
        }
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
        if reading.spans == Spans::Keep {
            reading.positions.push(span);
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
        Ok(match self.0.member(name) {
            Some((number, shape)) => Member::Known(number, shape),
            None => match &self.0.each {
                Some(each) => Member::Selected(name.to_owned(), each),
                None => Member::Other,
            },
        })
    }
}
