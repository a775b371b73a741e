//! Clauses on records: they come back byte by byte.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::record::{Keep, Payload, Record, Whole};
use crate::store::contract::{Store, Wanted};
use crate::testing::store::fixture::Fixture;
use crate::testing::store::hand::{LONG, ask, begin, done, key, replayed, settle};

/// Status, headers and body come back as they were recorded.
pub async fn a_record_comes_back_as_it_was<F: Fixture>(fixture: F) {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("text/plain"));
    for status in [200, 201, 204, 303, 299, 599] {
        let status = StatusCode::from_u16(status).unwrap();
        let record = Record::new(status, headers.clone(), whole(&[b"body"]));
        comes_back(fixture.store(), status.as_str(), record).await;
    }
}

/// No frame, one empty frame: neither is "nothing recorded", and they stay apart.
pub async fn an_empty_body_is_a_record_like_any_other<F: Fixture>(fixture: F) {
    let bodies = [("none", whole(&[])), ("empty", whole(&[b""]))];
    for (id, body) in bodies {
        let record = Record::new(StatusCode::NO_CONTENT, HeaderMap::new(), body);
        comes_back(fixture.store(), id, record).await;
    }
}

/// Repeated header lines come back in their order, other lines between them.
pub async fn header_lines_keep_their_order_and_repetition<F: Fixture>(fixture: F) {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("x-a", "1"),
        ("x-b", "2"),
        ("x-a", "3"),
        ("x-a", "1"),
        ("x-c", ""),
    ] {
        headers.append(name, HeaderValue::from_static(value));
    }
    let record = Record::new(StatusCode::OK, headers.clone(), whole(&[b""]));
    let again = comes_back(fixture.store(), "a", record).await;
    let lines =
        |headers: &HeaderMap| -> Vec<_> { headers.get_all("x-a").iter().cloned().collect() };
    assert_eq!(lines(again.headers()), lines(&headers));
    assert_eq!(lines(again.headers()), ["1", "3", "1"]);
}

/// NUL, invalid UTF-8, and Latin-1 header values are bytes like any other.
pub async fn bytes_that_are_no_text_come_back<F: Fixture>(fixture: F) {
    let every_byte: Vec<u8> = (0..=u8::MAX).collect();
    let mut headers = HeaderMap::new();
    headers.insert("x-latin", HeaderValue::from_bytes(b"caf\xe9").unwrap());
    headers.insert("x-high", HeaderValue::from_bytes(b"\xff\xfe\x80").unwrap());
    headers.insert("x-tab", HeaderValue::from_bytes(b"a\tb").unwrap());
    let bodies: [&[u8]; 5] = [
        b"\0",
        b"a\0b\0\0",
        b"\xff\xfe",
        b"\xc3\x28\xa0",
        &every_byte,
    ];
    for (number, body) in bodies.into_iter().enumerate() {
        let record = Record::new(StatusCode::OK, headers.clone(), whole(&[body]));
        comes_back(fixture.store(), &number.to_string(), record).await;
    }
}

/// Where the frames were cut, and what came behind them, is part of the record.
pub async fn trailers_and_frame_borders_come_back<F: Fixture>(fixture: F) {
    let mut trailers = HeaderMap::new();
    trailers.append("grpc-status", HeaderValue::from_static("0"));
    trailers.append("x-many", HeaderValue::from_static("1"));
    trailers.append("x-many", HeaderValue::from_bytes(b"\xe9").unwrap());
    for (id, trailers) in [
        ("none", None),
        ("empty", Some(HeaderMap::new())),
        ("some", Some(trailers)),
    ] {
        let body = Whole {
            trailers,
            sized: false,
            ..whole(&[b"ab", b"", b"c\0", b"def"])
        };
        let record = Record::new(StatusCode::OK, HeaderMap::new(), body);
        comes_back(fixture.store(), id, record).await;
    }
}

/// A response whose body was not kept comes back as that.
pub async fn a_record_that_was_too_large_comes_back<F: Fixture>(fixture: F) {
    let mut headers = HeaderMap::new();
    headers.insert("content-length", HeaderValue::from_static("99999999"));
    let record = Record::too_large(StatusCode::OK, headers);
    let again = comes_back(fixture.store(), "a", record).await;
    assert_eq!(*again.payload(), Payload::TooLarge);
}

/// The largest record that the layer keeps by default is kept whole.
pub async fn a_record_of_a_megabyte_comes_back<F: Fixture>(fixture: F) {
    let block: Vec<u8> = (0..=u8::MAX).cycle().take(1 << 16).collect();
    let frames: Vec<&[u8]> = std::iter::repeat_n(block.as_slice(), 16).collect();
    let record = Record::new(StatusCode::OK, HeaderMap::new(), whole(&frames));
    comes_back(fixture.store(), "a", record).await;
}

fn whole(frames: &[&[u8]]) -> Whole {
    Whole {
        frames: frames
            .iter()
            .map(|frame| Bytes::copy_from_slice(frame))
            .collect(),
        trailers: None,
        sized: true,
    }
}

/// Records under a fresh key, and compares what a claim and a look give.
async fn comes_back<S: Store>(store: &S, id: &str, record: Record) -> Arc<Record> {
    let record = Arc::new(record);
    let lease = begin(store, Wanted::new(key(id)), LONG).await;
    settle(store, lease.record(Arc::clone(&record), Keep::For(LONG))).await;
    let again = replayed(ask(store, Wanted::new(key(id)), LONG).await);
    assert_eq!(again, record, "the claim of {id}");
    assert_eq!(done(store, &key(id)).await, record, "the look at {id}");
    again
}
