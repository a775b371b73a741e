//! What is kept of a finished run.

use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize, Serializer};

use crate::error::Error;

/// What is kept of a finished run: status, headers, body, trailers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    status: StatusCode,
    headers: HeaderMap,
    payload: Payload,
}

/// The body of a [`Record`], or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Payload {
    /// The whole body, as it was sent.
    Whole(Whole),
    /// The response was larger than the limit (or endless): it ran, its body was not kept.
    TooLarge,
    /// The payload went when its conversation was forgotten.
    Forgotten,
}

/// A whole response body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whole {
    /// The data frames, with their borders.
    pub frames: Vec<Bytes>,
    /// The trailers, if the response had any.
    pub trailers: Option<HeaderMap>,
    /// Whether the response announced its length, so that a replay uses the same framing.
    pub sized: bool,
}

/// How long a record is kept, by the store's clock.
///
/// Longer than the sender goes on repeating: a repeat that comes later is a first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keep {
    /// For this long after the run has ended.
    For(Duration),
    /// As long as the message's conversation lives: until it had no new message for `idle`.
    /// A repeat does not extend it. A message without a conversation is kept `idle` after its run.
    Conversation {
        /// A week, where nothing else is said.
        idle: Duration,
    },
}

impl Keep {
    /// As long as the conversation had a new message within a week.
    pub const CONVERSATION: Self = Self::Conversation {
        idle: Duration::from_hours(7 * 24),
    };

    /// How long a row is kept at least.
    pub(crate) const fn at_least(self) -> Duration {
        match self {
            Self::For(time) | Self::Conversation { idle: time } => time,
        }
    }
}

impl Record {
    /// A record of a whole response.
    pub fn new(status: StatusCode, headers: HeaderMap, body: Whole) -> Self {
        Self {
            status,
            headers,
            payload: Payload::Whole(body),
        }
    }

    /// A record of a response whose body was over the limit.
    pub fn too_large(status: StatusCode, headers: HeaderMap) -> Self {
        Self {
            status,
            headers,
            payload: Payload::TooLarge,
        }
    }

    /// What is left of a record when its conversation is forgotten: that it ran.
    pub fn tombstone() -> Self {
        Self {
            status: StatusCode::OK,
            headers: HeaderMap::new(),
            payload: Payload::Forgotten,
        }
    }

    /// The response's status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The response's headers, repeated lines and their order included.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The response's body, or why it was not kept.
    pub fn payload(&self) -> &Payload {
        &self.payload
    }

    /// How many bytes the record holds, about. Stores use it to bound what they keep.
    pub fn size(&self) -> usize {
        let fields = |map: &HeaderMap| -> usize {
            map.iter().map(|(n, v)| n.as_str().len() + v.len()).sum()
        };
        let body = match &self.payload {
            Payload::Whole(whole) => {
                whole.frames.iter().map(Bytes::len).sum::<usize>()
                    + whole.trailers.as_ref().map_or(0, fields)
            }
            Payload::TooLarge | Payload::Forgotten => 0,
        };
        fields(&self.headers) + body
    }

    /// The record as bytes, for a store to keep: a version byte, then [postcard].
    ///
    /// [postcard]: https://postcard.jamesmunns.com/wire-format
    ///
    /// # Errors
    /// Only if memory runs out while writing.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::with_capacity(self.size() + ROOM);
        bytes.push(VERSION);
        postcard::to_extend(&Wire::of(self), bytes)
            .map_err(|e| Error::corrupt("a record could not be written").because(e))
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// If the bytes were written by an unknown version, or are damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let Some((&VERSION, rest)) = bytes.split_first() else {
            return Err(Error::corrupt("a record has an unknown version"));
        };
        let wire: Wire<'_> = postcard::from_bytes(rest)
            .map_err(|e| Error::corrupt("a record is damaged").because(e))?;
        wire.record()
            .ok_or_else(|| Error::corrupt("a record holds an impossible status or header"))
    }
}

const VERSION: u8 = 1;

/// For what stands around the bytes of headers and body.
const ROOM: usize = 64;

/// The stored form. Its field order is the format: new fields need a new version.
#[derive(Serialize, Deserialize)]
struct Wire<'a> {
    status: u16,
    #[serde(borrow)]
    headers: Fields<'a>,
    payload: WirePayload<'a>,
}

pub(crate) type Fields<'a> = Vec<(&'a str, &'a [u8])>;

#[derive(Serialize, Deserialize)]
enum WirePayload<'a> {
    Whole {
        #[serde(borrow)]
        frames: Vec<Frame<'a>>,
        #[serde(borrow)]
        trailers: Option<Fields<'a>>,
        sized: bool,
    },
    TooLarge,
    Forgotten,
}

/// Written as a whole: serde takes a slice for a list, and goes through it byte by byte. The format
/// is the same.
#[derive(Deserialize)]
#[serde(transparent)]
struct Frame<'a>(#[serde(borrow)] &'a [u8]);

impl Serialize for Frame<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl<'a> Wire<'a> {
    fn of(record: &'a Record) -> Self {
        Self {
            status: record.status.as_u16(),
            headers: fields_of(&record.headers),
            payload: match &record.payload {
                Payload::Whole(whole) => WirePayload::Whole {
                    frames: whole.frames.iter().map(|frame| Frame(frame)).collect(),
                    trailers: whole.trailers.as_ref().map(fields_of),
                    sized: whole.sized,
                },
                Payload::TooLarge => WirePayload::TooLarge,
                Payload::Forgotten => WirePayload::Forgotten,
            },
        }
    }

    fn record(self) -> Option<Record> {
        Some(Record {
            status: StatusCode::from_u16(self.status).ok()?,
            headers: header_map(self.headers)?,
            payload: match self.payload {
                WirePayload::Whole {
                    frames,
                    trailers,
                    sized,
                } => Payload::Whole(Whole {
                    frames: frames.iter().map(|f| Bytes::copy_from_slice(f.0)).collect(),
                    trailers: match trailers {
                        Some(fields) => Some(header_map(fields)?),
                        None => None,
                    },
                    sized,
                }),
                WirePayload::TooLarge => Payload::TooLarge,
                WirePayload::Forgotten => Payload::Forgotten,
            },
        })
    }
}

/// Header lines as they are stored: in order, repeated ones too.
pub(crate) fn fields_of(map: &HeaderMap) -> Fields<'_> {
    map.iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .collect()
}

/// Reads what [`fields_of`] gave; `None` if it holds what is no header line.
pub(crate) fn header_map(fields: Fields<'_>) -> Option<HeaderMap> {
    let mut map = HeaderMap::with_capacity(fields.len());
    for (name, value) in fields {
        map.append(
            HeaderName::from_bytes(name.as_bytes()).ok()?,
            HeaderValue::from_bytes(value).ok()?,
        );
    }
    Some(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(payload: Payload) -> Record {
        let mut headers = HeaderMap::new();
        headers.append("x-a", HeaderValue::from_static("1"));
        headers.append("x-b", HeaderValue::from_bytes(b"caf\xe9").unwrap());
        headers.append("x-a", HeaderValue::from_static("2"));
        Record {
            status: StatusCode::CREATED,
            headers,
            payload,
        }
    }

    #[test]
    fn bytes_bring_back_every_kind_of_record() {
        let whole = Payload::Whole(Whole {
            frames: vec![Bytes::from_static(b"\x00\xff"), Bytes::from_static(b"z")],
            trailers: Some(sample(Payload::TooLarge).headers),
            sized: true,
        });
        for payload in [whole, Payload::TooLarge, Payload::Forgotten] {
            let record = sample(payload);
            let bytes = record.to_bytes().unwrap();
            assert_eq!(Record::from_bytes(&bytes).unwrap(), record);
        }
    }

    /// Field case B21.
    #[test]
    fn damaged_or_later_bytes_are_an_error_and_no_record() {
        let bytes = sample(Payload::TooLarge).to_bytes().unwrap();
        assert!(
            Record::from_bytes(&bytes[..bytes.len() - 1])
                .unwrap_err()
                .is_corrupt()
        );
        assert!(Record::from_bytes(&[9, 0, 0]).unwrap_err().is_corrupt());
        assert!(Record::from_bytes(&[]).unwrap_err().is_corrupt());
    }

    /// Stores hold records for weeks: a new version reads what an old one wrote.
    ///
    /// Field case B21.
    #[test]
    fn what_version_1_wrote_is_read() {
        let body = Payload::Whole(Whole {
            frames: vec![Bytes::from_static(b"hi")],
            trailers: None,
            sized: true,
        });
        let written = b"\x01\xc9\x01\x03\x03x-a\x011\x03x-a\x012\x03x-b\x04caf\xe9\
            \x00\x01\x02hi\x00\x01";
        let read = Record::from_bytes(written).unwrap();
        assert_eq!(read, sample(body));
        assert_eq!(read.to_bytes().unwrap(), written);
    }
}
