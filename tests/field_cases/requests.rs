//! Whether a second request under a key is the same one.

use std::convert::Infallible;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use tokio::time::{Instant, sleep};
use tower::{Layer, ServiceExt, service_fn};
use tower_idempotency::channel::IdempotencyKey;
use tower_idempotency::store::{MemoryStore, Store};
use tower_idempotency::{BodyForm, BoxError, IdempotencyLayer, Keep, RequestBody};

use crate::app::{App, Sent, Web, keyed, post, text, web, with_body};
use crate::stores::all;

/// How bodies are compared.
#[derive(Clone, Copy, Debug)]
enum Form {
    Bytes,
    Canonical,
    NotAtAll,
}

use Form::{Bytes, Canonical, NotAtAll};

fn comparing(form: Form) -> Web {
    match form {
        Bytes => web(),
        Canonical => web().compare(Some(BodyForm::CanonicalJson)),
        NotAtAll => web().compare(None),
    }
}

/// Two bodies under one key, and whether the second is a repeat. What is none is refused, told
/// which part differs, and never runs.
const BODIES: &[(Form, &str, &str, bool)] = &[
    // A client whose every key is 0.
    (Bytes, "first", "second", false),
    (NotAtAll, "first", "second", true),
    // The same document, written in another order.
    (
        Bytes,
        r#"{"a":1,"b":{"x":1,"y":2}}"#,
        r#"{"b":{"y":2,"x":1},"a":1}"#,
        false,
    ),
    (
        Canonical,
        r#"{"a":1,"b":{"x":1,"y":2}}"#,
        r#"{"b":{"y":2,"x":1},"a":1}"#,
        true,
    ),
    (
        Canonical,
        r#"{"a":1,"b":2}"#,
        "{ \"b\" : 2,\n \"a\" : 1 }",
        true,
    ),
    // Documents that only look alike.
    (Canonical, "[1,2]", "[2,1]", false),
    (Canonical, r#"{"a":1}"#, r#"{"a":1.0}"#, false),
    (Canonical, r#"{"a":1}"#, r#"{"a":"1"}"#, false),
    (Canonical, r#"{"a":null}"#, "{}", false),
    (Canonical, r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#, false),
    (Canonical, r#"{"a":1,"a":2}"#, r#"{"a":2}"#, false),
    // An edited draft under the key of the first try.
    (Bytes, r#"{"text":"helo"}"#, r#"{"text":"hello"}"#, false),
    (
        Canonical,
        r#"{"text":"helo"}"#,
        r#"{"text":"hello"}"#,
        false,
    ),
    (NotAtAll, r#"{"text":"helo"}"#, r#"{"text":"hello"}"#, true),
];

/// Field cases B49, B50, B51, B55, P21, P55, P59.
#[tokio::test]
async fn a_second_body_under_a_key_is_a_repeat_or_is_refused_and_never_runs() {
    for &(form, first, second, is_repeat) in BODIES {
        let layer = comparing(form);
        let app = App::quick();
        app.send(&layer, keyed("0", first)).await;
        let seen = app.send(&layer, keyed("0", second)).await;
        assert_eq!(seen.is_replayed(), is_repeat, "{form:?}: {first} {second}");
        if !is_repeat {
            assert_eq!(seen.status, 422);
            assert!(seen.text().contains("The body differs"), "{}", seen.text());
        }
        assert_eq!(app.runs(), 1);
    }
}

/// An upload whose library draws a boundary anew in each attempt: refused byte by byte, a repeat
/// where bodies are not compared, and in no case a second run. The content type holds the boundary,
/// so it differs as well.
///
/// Field case B54.
#[tokio::test]
async fn an_upload_with_another_boundary_never_runs_twice() {
    for (form, is_repeat) in [(Bytes, false), (Canonical, false), (NotAtAll, true)] {
        let layer = comparing(form);
        let app = App::quick();
        let upload = |boundary: &str| {
            let kind = format!("multipart/form-data; boundary={boundary}");
            let body = format!("--{boundary}\r\n\r\npicture\r\n--{boundary}--\r\n");
            post(
                "/messages",
                &[("idempotency-key", "k"), ("content-type", &kind)],
                body,
            )
        };
        app.send(&layer, upload("a1")).await;
        let seen = app.send(&layer, upload("b2")).await;
        assert_eq!(seen.is_replayed(), is_repeat, "{form:?}");
        assert_eq!((seen.status == 422, app.runs()), (!is_repeat, 1));
    }
}

/// What differs with every attempt, and says nothing about the message.
///
/// Field cases B56, P06.
#[tokio::test]
async fn headers_that_change_with_each_attempt_do_not_matter() {
    let layer = web();
    let app = App::quick();
    let attempt = |n: &str| {
        let mut request = keyed("k", "yes");
        for name in [
            "date",
            "user-agent",
            "traceparent",
            "x-request-id",
            "x-slack-retry-num",
            "x-slack-retry-reason",
            "x-slack-request-timestamp",
            "x-slack-signature",
            "x-hub-signature-256",
            "authorization",
            "cookie",
            "accept",
            "content-length",
        ] {
            request.headers_mut().insert(name, n.parse().unwrap());
        }
        request
    };
    app.send(&layer, attempt("3")).await;
    assert!(app.send(&layer, attempt("4")).await.is_replayed());
}

fn slowly() -> App {
    App::new(|asked| async move {
        sleep(Duration::from_secs(2)).await;
        text(&format!("run {}", asked.run))
    })
}

/// Another body is refused at once also while the first runs, and not told to come again for ever.
///
/// Field cases B53, P38.
#[tokio::test(start_paused = true)]
async fn another_body_is_refused_at_once_while_the_first_runs() {
    let layer = web();
    let app = slowly();
    let other = async {
        sleep(Duration::from_millis(500)).await;
        let began = Instant::now();
        let seen = app.send(&layer, keyed("k", "other")).await;
        (seen, began.elapsed())
    };
    let (first, (other, took)) = tokio::join!(app.send(&layer, keyed("k", "yes")), other);
    assert_eq!((first.status.as_u16(), other.status.as_u16()), (200, 422));
    assert!(took < Duration::from_millis(10), "{took:?}");
    assert_eq!(app.runs(), 1);
}

/// Wherever the first one stands, done, running, or having won by a moment, on each store: another
/// body is another request. Once its retention has ended and it was swept, it is a first one.
///
/// Field case B52.
#[tokio::test(flavor = "multi_thread")]
async fn another_body_is_found_wherever_the_first_one_stands() {
    for (name, store, _held) in all().await {
        let layer = IdempotencyLayer::new(store.clone(), IdempotencyKey::unscoped());
        let app = App::new(|_| async {
            sleep(Duration::from_millis(20)).await;
            text("done")
        });
        for round in 0..10 {
            let key = format!("race {round}");
            let both = ["one", "other"].map(|body| app.send(&layer, keyed(&key, body)));
            let mut statuses: Vec<u16> = join_all(both)
                .await
                .iter()
                .map(|seen| seen.status.as_u16())
                .collect();
            statuses.sort_unstable();
            assert_eq!(statuses, [200, 422], "{name}");
            let done = app.send(&layer, keyed(&key, "third")).await;
            assert_eq!(done.status, 422, "{name}");
        }
        let brief = layer.keep(Keep::For(Duration::from_nanos(1)));
        for run in 11..13 {
            let seen = app.send(&brief, keyed("brief", format!("{run}"))).await;
            assert_eq!((seen.status.as_u16(), app.runs()), (200, run), "{name}");
            // Past the tick in which its time ended.
            sleep(Duration::from_millis(5)).await;
            store.sweep(100).await.unwrap();
        }
    }
}

/// Keys as clients spell them come back from each store as they went in: a repeat is one whatever
/// signs are in its key, and keys that only look alike are two.
///
/// Field cases B10, P19, P31.
#[tokio::test(flavor = "multi_thread")]
async fn every_spelling_of_a_key_is_found_again_in_each_store() {
    let long = "x".repeat(255);
    let spellings = [
        "abc",
        "ABC",
        "a:b",
        "a%3Ab",
        "a b",
        "a/b+c=",
        "wamid.HBgLMTU1NTAxMDIyMjIVAgASGBQ=",
        "%",
        "_",
        "a_c",
        "'; --",
        "\\",
        "null",
        "0",
        "00",
        &long,
    ];
    for (name, store, _held) in all().await {
        let layer = IdempotencyLayer::new(store, IdempotencyKey::unscoped());
        let app = App::quick();
        for (n, key) in (1..).zip(spellings) {
            let padded = format!("  {key} ");
            for (round, key) in [key, key, &padded].into_iter().enumerate() {
                let seen = app.send(&layer, keyed(key, "yes")).await;
                assert_eq!(seen.text(), format!("run {n}"), "{name} {key}");
                assert_eq!(seen.is_replayed(), round > 0, "{name} {key}");
            }
        }
        assert_eq!(
            app.send(&layer, keyed("caf\u{e9}", "yes")).await.status,
            400
        );
    }
}

/// A body of exactly the limit passes, one byte more does not, and leaves no claim; so it is with
/// bodies whose length is not announced.
///
/// Field cases B89, P77.
#[tokio::test]
async fn the_limit_of_a_body_is_the_last_length_that_passes() {
    let layer = web().max_request(10);
    let app = App::new(|asked| async move { Ok(with_body(asked.body)) });
    let sized = |n: usize| -> Sent { keyed(&format!("{n}"), vec![b'x'; n]) };
    assert_eq!(app.send(&layer, sized(11)).await.status, 413);
    assert_eq!((app.runs(), layer.counts().runs), (0, 0));
    assert_eq!(app.send(&layer, sized(10)).await.text(), "x".repeat(10));
    assert_eq!(app.send(&layer, keyed("11", "small")).await.status, 200);

    let echo = service_fn(async |request: Request<RequestBody<_>>| {
        let body: Result<_, BoxError> = request.into_body().collect().await;
        Ok::<_, Infallible>(Response::new(Full::new(body.unwrap().to_bytes())))
    });
    for (length, status) in [(10, 200), (11, 413)] {
        let piece = || Ok::<_, BoxError>(Frame::data(bytes::Bytes::from_static(b"x")));
        let pieces: Vec<_> = std::iter::repeat_with(piece).take(length).collect();
        let pieces = stream::iter(pieces);
        let request = post("/", &[("idempotency-key", "unannounced")], "");
        let request = request.map(|_| StreamBody::new(pieces));
        let answer = layer.layer(echo).oneshot(request).await.unwrap();
        assert_eq!(answer.status(), status, "{length} pieces");
    }
}

/// What the handler gets is what was sent: a verifier behind the layer sees the same bytes, and the
/// head is the same but for the extension `Claimed`.
///
/// Field case B107.
#[tokio::test]
async fn the_handler_gets_the_bytes_and_the_head_as_they_were_sent() {
    #[derive(Clone, Debug, PartialEq)]
    struct Of(&'static str);
    let bodies: [&[u8]; 7] = [
        b"{\"u\":\"http:\\/\\/x\"}",
        b"{\"a\":1.0,\"a\":1}\n",
        b"\xef\xbb\xbf{}",
        b"",
        b"\xff\0\xfe",
        b" \t\r\n",
        b"payload=%7B%7D&x=+",
    ];
    for (n, body) in bodies.into_iter().enumerate() {
        let app = App::new(move |asked| async move {
            assert_eq!(asked.body, body);
            assert_eq!(asked.head.method, "PUT");
            assert_eq!(asked.head.uri, "http://chat.example/a%2Fb?x=1&x=%20");
            assert_eq!(asked.head.version, http::Version::HTTP_10);
            assert_eq!(asked.head.headers.get_all("x-line").iter().count(), 2);
            assert_eq!(asked.head.headers["x-signature"], "sha256=00ff");
            assert_eq!(asked.head.headers["content-length"], body.len().to_string());
            assert_eq!(asked.head.extensions.get::<Of>(), Some(&Of("the server")));
            assert_eq!(asked.trailers, None);
            text("verified")
        });
        let length = body.len().to_string();
        let key = format!("{n}");
        let headers = [
            ("idempotency-key", key.as_str()),
            ("x-line", "1"),
            ("x-line", "2"),
            ("x-signature", "sha256=00ff"),
            ("content-length", &length),
        ];
        let mut request = post("http://chat.example/a%2Fb?x=1&x=%20", &headers, body);
        *request.method_mut() = http::Method::PUT;
        *request.version_mut() = http::Version::HTTP_10;
        request.extensions_mut().insert(Of("the server"));
        let layer = IdempotencyLayer::new(MemoryStore::new(), IdempotencyKey::unscoped());
        assert_eq!(app.send(&layer, request).await.text(), "verified");
    }
}
