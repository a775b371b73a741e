//! What is no delivery streams through.

use bytes::Bytes;
use futures_util::stream;
use reqwest::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::gateway::Gateway;
use crate::upstream::Upstream;

#[tokio::test]
async fn an_upload_larger_than_any_delivery_reaches_the_upstream() {
    let upstream = Upstream::start().await;
    let gateway = Gateway::before(upstream.address).await;
    let chunks = (0..50).map(|_| Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; 100_000])));
    let request = reqwest::Client::new()
        .post(gateway.url("/files"))
        .body(reqwest::Body::wrap_stream(stream::iter(chunks)));
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::CREATED);
    assert_eq!(upstream.seen().await[0].length, 5_000_000);
}

#[tokio::test]
async fn events_arrive_as_they_are_made_with_and_without_a_key() {
    let upstream = Upstream::start().await;
    let gateway = Gateway::before(upstream.address).await;
    for path in ["/events", "/chat/7"] {
        let request = reqwest::Client::new()
            .post(gateway.url(path))
            .header("x-user", "ann")
            .header("idempotency-key", "k")
            .header("x-do", "events");
        let mut answer = request.send().await.unwrap();
        assert_eq!(answer.chunk().await.unwrap().unwrap(), "data: one\n\n");
        upstream.go().await;
        assert_eq!(answer.chunk().await.unwrap().unwrap(), "data: two\n\n");
        assert_eq!(answer.chunk().await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_web_socket_carries_bytes_both_ways() {
    let upstream = Upstream::start().await;
    let gateway = Gateway::before(upstream.address).await;
    for path in ["/socket", "/chat/7"] {
        let mut stream = TcpStream::connect(gateway.address).await.unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(stream.read_u8().await.unwrap());
        }
        let answer = String::from_utf8(answer).unwrap().to_ascii_lowercase();
        assert!(answer.starts_with("http/1.1 101"), "{answer}");
        assert!(answer.contains("upgrade: websocket"), "{answer}");
        for word in [b"ping", b"pong"] {
            stream.write_all(word).await.unwrap();
            let mut back = [0; 4];
            stream.read_exact(&mut back).await.unwrap();
            assert_eq!(&back, word);
        }
    }
}

#[tokio::test]
async fn an_upgrade_that_would_carry_requests_past_the_layer_is_not_passed_on() {
    let upstream = Upstream::start().await;
    let gateway = Gateway::before(upstream.address).await;
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    let head = "GET / HTTP/1.1\r\nhost: x\r\nconnection: close, upgrade, http2-settings\r\n\
                upgrade: h2c\r\nhttp2-settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let seen = upstream.seen().await;
    assert!(seen[0].all("upgrade").is_empty(), "{seen:?}");
}

#[tokio::test]
async fn interim_answers_end_at_the_gateway_and_the_final_one_passes() {
    let upstream = Upstream::start().await;
    let gateway = Gateway::before(upstream.address).await;
    for replayed in [false, true] {
        let answer = gateway.say("k", "hello", &[("x-do", "hints")]).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let mark = answer.headers().contains_key("idempotency-replayed");
        assert_eq!(
            (mark, answer.text().await.unwrap().as_str()),
            (replayed, "after hints")
        );
    }
}

#[tokio::test]
async fn http_2_clients_are_served_too() {
    let upstream = Upstream::start().await;
    let gateway = Gateway::before(upstream.address).await;
    let client = reqwest::Client::builder()
        .http2_prior_knowledge()
        .build()
        .unwrap();
    for replayed in [false, true] {
        let request = client
            .post(gateway.url("/chat/7"))
            .header("x-user", "ann")
            .header("idempotency-key", "k")
            .body("hello");
        let answer = request.send().await.unwrap();
        assert_eq!(answer.version(), reqwest::Version::HTTP_2);
        let mark = answer.headers().contains_key("idempotency-replayed");
        assert_eq!((answer.status(), mark), (StatusCode::CREATED, replayed));
    }
    let seen = upstream.seen().await;
    assert_eq!(seen[0].all("host"), [gateway.address.to_string()]);
}
