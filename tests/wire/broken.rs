//! A body that does not come whole is no message: nothing is claimed, nothing runs, and the
//! message that comes whole later is a first one.

use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use http::{HeaderMap, HeaderValue};
use tokio::io::AsyncWriteExt;

use crate::peer::Ask;
use crate::peer::h2::{H2, answer_of};
use crate::peer::raw::{Raw, head};
use crate::server::{Kind, Server, layer};

/// The whole message runs, and is the first that did.
async fn is_still_fresh(server: &Server, key: &str) {
    let whole = Ask::new(key, "echo");
    let seen = if server.kind.speaks_http1() {
        Raw::connect(server.address).await.ask(&whole).await
    } else {
        H2::connect(server.address).await.ask(&whole).await
    };
    assert_eq!((seen.status, seen.is_replayed()), (200, false), "{seen:?}");
    assert_eq!((seen.body, server.app.runs()), (b"hello".to_vec(), 1));
    assert_eq!(server.layer.counts().runs, 1);
}

/// What cuts a body on HTTP/1: how it was framed, and all that came of it.
const CUT: [(&str, &str); 6] = [
    ("content-length: 5", ""),
    ("content-length: 5", "hell"),
    ("transfer-encoding: chunked", "5\r\nhel"),
    ("transfer-encoding: chunked", "5\r\nhello\r\n"),
    ("transfer-encoding: chunked", "5\r\nhello\r\n0\r\n"),
    ("transfer-encoding: chunked", "5\r\nhello\r\nzz\r\n"),
];

/// Field case P76.
#[tokio::test]
async fn an_http_1_connection_that_ends_in_the_body_makes_no_message() {
    for kind in [Kind::Axum, Kind::Hyper1] {
        for (framing, came) in CUT {
            let server = Server::start(kind, layer()).await;
            let mut raw = Raw::connect(server.address).await;
            raw.write(head(&Ask::new("k", "echo"), framing)).await;
            raw.write(came).await;
            raw.io.shutdown().await.unwrap();
            let answer = raw.answer().await;
            assert!(
                answer.as_ref().is_none_or(|seen| seen.status == 400),
                "{framing} {came:?}: {answer:?}"
            );
            is_still_fresh(&server, "k").await;
        }
    }
}

/// Field case B89.
#[tokio::test]
async fn two_lengths_are_refused_and_chunks_win_over_a_length() {
    let server = Server::start(Kind::Hyper1, layer()).await;
    let mut raw = Raw::connect(server.address).await;
    let two = "content-length: 5\r\ncontent-length: 6";
    raw.write(head(&Ask::new("k", "echo"), two)).await;
    raw.write("hello!").await;
    assert_eq!(raw.answer().await.unwrap().status, 400);
    is_still_fresh(&server, "k").await;
    let mut raw = Raw::connect(server.address).await;
    let both = "content-length: 99\r\ntransfer-encoding: chunked";
    raw.write(head(&Ask::new("l", "echo"), both)).await;
    raw.write("5\r\nhello\r\n0\r\n\r\n").await;
    assert_eq!(raw.answer().await.unwrap().body, b"hello");
}

#[tokio::test]
async fn a_reset_in_the_middle_makes_no_message_whatever_its_reason() {
    for kind in [Kind::Axum, Kind::Hyper2, Kind::Tonic] {
        for reason in [Reason::CANCEL, Reason::NO_ERROR, Reason::INTERNAL_ERROR] {
            a_reset_makes_no_message(kind, reason, Some(5)).await;
            a_reset_makes_no_message(kind, reason, None).await;
        }
    }
}

async fn a_reset_makes_no_message(kind: Kind, reason: Reason, length: Option<usize>) {
    let server = Server::start(kind, layer()).await;
    let mut h2 = H2::connect(server.address).await;
    let mut streams = Vec::new();
    for _ in 0..20 {
        let (answer, mut body) = h2.begin(&Ask::new("k", "echo"), length).await;
        body.send_data(Bytes::from_static(b"hell"), false).unwrap();
        streams.push((answer, body));
    }
    // A reset clears what was not sent yet, and the connection must live until it was sent.
    tokio::time::sleep(Duration::from_millis(20)).await;
    for (_, body) in &mut streams {
        body.send_reset(reason);
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    for (answer, _) in streams {
        assert!(answer.await.is_err());
    }
    settled(&server).await;
    is_still_fresh(&server, "k").await;
}

#[tokio::test]
async fn a_grpc_message_cut_by_a_reset_makes_no_call_although_its_body_ends_in_order() {
    let server = Server::start(Kind::Hyper2, layer()).await;
    let call = Ask::new("k", "echo").with("content-type", "application/grpc");
    let mut h2 = H2::connect(server.address).await;
    let (answer, mut body) = h2.begin(&call, None).await;
    let message = Bytes::from_static(b"\0\0\0\0\x05hell");
    body.send_data(message, true).unwrap();
    let seen = answer_of(answer).await.unwrap();
    assert_eq!(seen.all("grpc-status"), [b"3"], "{seen:?}");
    is_still_fresh(&server, "k").await;
}

#[tokio::test]
async fn an_http_2_connection_that_ends_in_the_body_makes_no_message() {
    let all = [Kind::Axum, Kind::Hyper2, Kind::Tonic];
    for (kind, length) in all.into_iter().flat_map(|it| [(it, Some(5)), (it, None)]) {
        let server = Server::start(kind, layer()).await;
        let mut h2 = H2::connect(server.address).await;
        let (answer, mut body) = h2.begin(&Ask::new("k", "echo"), length).await;
        body.send_data(Bytes::from_static(b"hell"), false).unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        drop((h2, answer, body));
        settled(&server).await;
        is_still_fresh(&server, "k").await;
    }
}

#[tokio::test]
async fn fewer_bytes_than_declared_make_no_message_on_http_2() {
    for kind in [Kind::Axum, Kind::Hyper2, Kind::Tonic] {
        let server = Server::start(kind, layer()).await;
        let mut h2 = H2::connect(server.address).await;
        let (answer, mut body) = h2.begin(&Ask::new("k", "echo"), Some(5)).await;
        body.send_data(Bytes::from_static(b"hell"), true).unwrap();
        let answer = answer_of(answer).await;
        assert!(answer.is_err_and(|error| error.is_reset()), "{kind:?}");
        is_still_fresh(&server, "k").await;
    }
}

/// Until the server has done with what broke off.
async fn settled(server: &Server) {
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(server.layer.drain(Duration::from_secs(5)).await, 0);
    assert_eq!(server.app.runs(), 0);
}

/// Field case B89.
#[tokio::test]
async fn a_sender_that_trickles_is_told_that_it_is_late_and_holds_no_key() {
    let server = Server::start(Kind::Axum, layer().read_limit(Duration::from_millis(300))).await;
    for (framing, came) in [
        ("content-length: 5", "hell"),
        ("transfer-encoding: chunked", "5\r\nhello\r\n"),
    ] {
        let mut raw = Raw::connect(server.address).await;
        raw.write(head(&Ask::new("k", "echo"), framing)).await;
        raw.write(came).await;
        let seen = raw.answer().await.unwrap();
        assert_eq!(seen.status, 408);
        assert!(seen.text().contains("body-late"), "{seen:?}");
        assert!(raw.ends_here().await);
    }
    let mut h2 = H2::connect(server.address).await;
    let (answer, mut body) = h2.begin(&Ask::new("k", "echo"), None).await;
    body.send_data(Bytes::from_static(b"hell"), false).unwrap();
    assert_eq!(answer_of(answer).await.unwrap().status, 408);
    is_still_fresh(&server, "k").await;
}

/// Field case B107.
#[tokio::test]
async fn trailers_of_a_request_reach_the_handler_and_its_repeat_is_the_same() {
    let server = Server::start(Kind::Axum, layer()).await;
    for replayed in [false, true] {
        let mut raw = Raw::connect(server.address).await;
        let framing = "trailer: x-sum\r\ntransfer-encoding: chunked";
        raw.write(head(&Ask::new("k", "echo"), framing)).await;
        raw.write("5\r\nhello\r\n0\r\nx-sum: 42\r\n\r\n").await;
        let seen = raw.answer().await.unwrap();
        assert_eq!(seen.is_replayed(), replayed);
        assert_eq!(seen.all("x-trailer-x-sum"), [b"42"]);
    }
    for replayed in [false, true] {
        let mut h2 = H2::connect(server.address).await;
        let (answer, mut body) = h2.begin(&Ask::new("l", "echo"), None).await;
        body.send_data(Bytes::from_static(b"hello"), false).unwrap();
        let sum = HeaderValue::from_static("42");
        let trailers = HeaderMap::from_iter([("x-sum".parse().unwrap(), sum)]);
        body.send_trailers(trailers).unwrap();
        let seen = answer_of(answer).await.unwrap();
        assert_eq!(seen.is_replayed(), replayed);
        assert_eq!(seen.all("x-trailer-x-sum"), [b"42"]);
    }
}
