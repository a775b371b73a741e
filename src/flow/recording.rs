//! What of an answer becomes its record.

use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName};
use http::response::Parts;
use http::{HeaderMap, HeaderValue};

use crate::channel::contract::Ack;
use crate::policy::{OF_THE_CONNECTION, Options};
use crate::record::{Record, Whole};

/// The record of an answer that was read whole.
pub(crate) fn whole_record(options: &Options, parts: &Parts, whole: &Whole) -> Record {
    let mut headers = recorded_headers(options, &parts.headers);
    let length: usize = whole.frames.iter().map(Bytes::len).sum();
    // Where an answer has no body, its length is that of another's (RFC 9110, section 8.6).
    if length > 0 && headers.contains_key(CONTENT_LENGTH) {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    Record::new(parts.status, headers, packed_body(whole))
}

/// The record of an answer whose body is not kept.
pub(crate) fn too_large_record(options: &Options, parts: &Parts) -> Record {
    Record::too_large(parts.status, recorded_headers(options, &parts.headers))
}

/// The record of a message that is done although its answer was no success.
pub(crate) fn ack_record(ack: &Ack) -> Record {
    let mut headers = HeaderMap::new();
    if let Some(content_type) = &ack.content_type {
        headers.insert(CONTENT_TYPE, content_type.clone());
    }
    let frames = if ack.body.is_empty() {
        Vec::new()
    } else {
        vec![ack.body.clone()]
    };
    let body = Whole {
        frames,
        trailers: None,
        sized: true,
    };
    Record::new(ack.status, headers, body)
}

/// The header fields that a repeat is given too. Left out here and not at the replay, so that
/// cookies are never stored.
pub(crate) fn recorded_headers(options: &Options, headers: &HeaderMap) -> HeaderMap {
    let named = connection_options(headers);
    let mut piece = BytesMut::with_capacity(headers.values().map(HeaderValue::len).sum());
    let mut recorded = HeaderMap::with_capacity(headers.keys_len());
    for (name, value) in headers {
        let is_left_out = OF_THE_CONNECTION.contains(name)
            || options.not_replayed.contains(name)
            || named.contains(name);
        if !is_left_out {
            let copy = HeaderValue::from_maybe_shared(packed(&mut piece, value.as_bytes()));
            let mut copy = copy.unwrap_or_else(|_| value.clone());
            copy.set_sensitive(value.is_sensitive());
            recorded.append(name.clone(), copy);
        }
    }
    recorded
}

/// A copy of a body in one piece of its size.
pub(crate) fn packed_body(whole: &Whole) -> Whole {
    let mut piece = BytesMut::with_capacity(whole.frames.iter().map(Bytes::len).sum());
    let frames = whole.frames.iter();
    Whole {
        frames: frames.map(|frame| packed(&mut piece, frame)).collect(),
        trailers: whole.trailers.clone(),
        sized: whole.sized,
    }
}

/// What an answer is made of are mostly slices of larger pieces, such as the read buffer of a
/// connection, and a record would hold those as long as it lives.
fn packed(piece: &mut BytesMut, bytes: &[u8]) -> Bytes {
    piece.extend_from_slice(bytes);
    piece.split().freeze()
}

/// The fields that `Connection` names belong to this connection only (RFC 9110, section 7.6.1).
fn connection_options(headers: &HeaderMap) -> Vec<HeaderName> {
    headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_and_connection_fields_are_not_recorded_and_repeated_lines_are() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-a", "1"),
            ("set-cookie", "session=1"),
            ("x-a", "2"),
            ("connection", "close, X-Hop"),
            ("x-hop", "1"),
            ("access-control-allow-origin", "https://a.example"),
            ("date", "Mon, 30 Nov 2026 12:00:00 GMT"),
            ("content-length", "3"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        let recorded = recorded_headers(&Options::default(), &headers);
        let lines: Vec<_> = recorded
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        assert_eq!(lines, [("x-a", "1"), ("x-a", "2"), ("content-length", "3")]);
    }
}
