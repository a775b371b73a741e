//! A repeat gets what the first caller got, less what was meant for that caller alone.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use tower_idempotency::BoxError;

use crate::app::{App, Seen, Web, keyed, text, web, with_body};

type Lines = &'static [(&'static str, &'static [u8])];

/// First answer and replay of a handler that answers with these header lines.
async fn both(layer: &Web, lines: Lines) -> (Seen, Seen) {
    let app = App::new(move |_| async move {
        let mut answer = with_body("done");
        *answer.status_mut() = http::StatusCode::CREATED;
        for (name, value) in lines {
            let value = HeaderValue::from_bytes(value)?;
            answer
                .headers_mut()
                .append(HeaderName::from_static(name), value);
        }
        Ok::<_, BoxError>(answer)
    });
    let first = app.send(layer, keyed("k", "yes")).await;
    let second = app.send(layer, keyed("k", "yes")).await;
    assert!(!first.is_replayed() && second.is_replayed());
    (first, second)
}

/// What a repeat gets too: where the new thing is, what it is, how long it may be kept; line by
/// line, in order, byte by byte.
const KEPT: Lines = &[
    ("location", b"/messages/7"),
    ("etag", b"\"v1\""),
    ("content-type", b"text/plain; charset=utf-8"),
    ("content-language", b"en"),
    ("content-disposition", b"attachment; filename=\"a, b.txt\""),
    ("link", b"</a>; rel=\"next, last\""),
    ("link", b"</b>; rel=prev"),
    ("vary", b"Accept"),
    ("vary", b"Accept-Language"),
    ("cache-control", b"no-store"),
    ("x-resource-version", b"3"),
    ("x-empty", b""),
    ("x-latin", b"caf\xe9"),
    ("x-date", b"Wed, 21 Oct 2026 07:28:00 GMT"),
];

/// Field cases B29, B31, P67, P74, P80.
#[tokio::test]
async fn header_lines_come_again_as_they_were() {
    let (first, second) = both(&web(), KEPT).await;
    for (name, _) in KEPT {
        assert_eq!(second.lines(name), first.lines(name), "{name}");
    }
    assert_eq!(second.status, 201);
    assert_eq!(second.lines("link").len() + second.lines("vary").len(), 4);
}

/// What was said to one caller, over one connection or at one time.
const OWN: Lines = &[
    (
        "set-cookie",
        b"session=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT",
    ),
    ("set-cookie", b"theme=dark"),
    ("date", b"Wed, 21 Oct 2026 07:28:00 GMT"),
    ("www-authenticate", b"Negotiate dG9rZW4="),
    ("authentication-info", b"nextnonce=\"1\""),
    ("access-control-allow-origin", b"https://a.example"),
    ("access-control-allow-credentials", b"true"),
];

/// What belongs to one connection.
const OF_THE_CONNECTION: Lines = &[
    ("connection", b"close, x-hop"),
    ("x-hop", b"1"),
    ("keep-alive", b"timeout=5"),
    ("proxy-authenticate", b"Basic"),
    ("proxy-authentication-info", b"nextnonce=\"1\""),
    ("transfer-encoding", b"chunked"),
    ("te", b"trailers"),
    ("upgrade", b"websocket"),
];

/// Field case B30.
#[tokio::test]
async fn what_was_said_to_one_caller_is_not_said_to_another() {
    for lines in [OWN, OF_THE_CONNECTION] {
        let (first, second) = both(&web(), lines).await;
        for (name, _) in lines {
            assert!(!first.lines(name).is_empty(), "{name}");
            assert_eq!(second.lines(name), [b""; 0], "{name}");
        }
    }
}

/// A list of one's own may keep cookies; it cannot keep what belongs to a connection.
///
/// Field case B30.
#[tokio::test]
async fn a_list_of_ones_own_keeps_no_field_of_the_connection() {
    let chosen = || web().not_replayed([HeaderName::from_static("x-secret")]);
    let (first, second) = both(&chosen(), OWN).await;
    for (name, _) in OWN {
        assert_eq!(second.lines(name), first.lines(name), "{name}");
    }
    let (_, second) = both(&chosen(), OF_THE_CONNECTION).await;
    for (name, _) in OF_THE_CONNECTION {
        assert_eq!(second.lines(name), [b""; 0], "{name}");
    }
    let (_, second) = both(&chosen(), &[("x-secret", b"1")]).await;
    assert_eq!(second.lines("x-secret"), [b""; 0]);
}

/// A replay's length is that of its bytes, whatever the handler had claimed.
///
/// Field case B32.
#[tokio::test]
async fn the_length_of_a_replay_is_that_of_its_body() {
    let (_, second) = both(&web(), &[("content-length", b"100")]).await;
    assert_eq!(
        (second.header("content-length"), second.text()),
        ("4", "done".into())
    );
    let (_, second) = both(&web(), &[("content-length", b"4")]).await;
    assert_eq!(second.header("content-length"), "4");
}

/// Bodies are bytes, not texts and not documents.
///
/// Field case B33.
#[tokio::test]
async fn bodies_come_again_byte_by_byte() {
    let all: Vec<u8> = (0..=255).collect();
    let bodies: [&[u8]; 7] = [
        b"{\"b\":1.0,\"a\":1}\n",
        b"{\"n\":12345678901234567890.10,\"n\":1e400}",
        b"\xff\xfe broken \xc3",
        b"\x1f\x8b\x08\0\0\0\0\0\0\xff",
        b"\xef\xbb\xbfwith a mark",
        b"",
        &all,
    ];
    let layer = web();
    let echo = App::new(|asked| async move { Ok(with_body(asked.body)) });
    for (n, body) in bodies.into_iter().enumerate() {
        let send = || echo.send(&layer, keyed(&format!("{n}"), body.to_vec()));
        assert_eq!(send().await.body, body);
        let replay = send().await;
        assert!(replay.is_replayed());
        assert_eq!(replay.body, body);
    }
}

/// The record is all that a replay needs: the handler may be broken by then.
///
/// Field case B39.
#[tokio::test]
async fn a_replay_does_not_ask_the_handler() {
    let layer = web();
    let app = App::new(|asked| async move {
        assert_eq!(asked.run, 1, "asked again");
        text("done")
    });
    app.send(&layer, keyed("k", "yes")).await;
    for _ in 0..3 {
        let replay = app.send(&layer, keyed("k", "yes")).await;
        assert_eq!((replay.text(), replay.is_replayed()), ("done".into(), true));
    }
    assert_eq!(app.runs(), 1);
}

/// A run is not marked, a replay is, and who comes in between is told when to come again.
///
/// Field case B37.
#[tokio::test(start_paused = true)]
async fn a_replay_is_marked_and_a_run_is_not() {
    let layer = web().wait(Duration::ZERO);
    let app = App::new(|_| async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        text("done")
    });
    let send = || app.send(&layer, keyed("k", "yes"));
    let between = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        send().await
    };
    let (first, between) = tokio::join!(send(), between);
    assert_eq!(first.lines("idempotency-replayed"), [b""; 0]);
    assert!(between.is_retryable() && !between.is_replayed());
    assert_eq!(send().await.lines("idempotency-replayed"), [b"true"]);
}
