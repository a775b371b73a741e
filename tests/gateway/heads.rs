//! What of a message's head is passed on, in both directions.

use reqwest::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fixtures::TEXT;
use crate::gateway::Gateway;
use crate::upstream::Upstream;

/// Sends a request by hand, and reads all until the gateway closes.
async fn raw(gateway: &Gateway, request: &str) -> String {
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_chunked_delivery_with_expect_goes_on_with_its_length_and_without() {
    let upstream = Upstream::start().await;
    let gateway = Gateway::before(upstream.address).await;
    let answer = raw(
        &gateway,
        "POST /chat/7 HTTP/1.1\r\nhost: chat.example\r\nx-user: ann\r\nidempotency-key: k\r\n\
         expect: 100-continue\r\ntransfer-encoding: chunked\r\nconnection: close, x-mine\r\n\
         x-mine: 1\r\nte: trailers\r\nx-idempotency-token: 99\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    )
    .await;
    assert!(answer.contains("201 Created"), "{answer}");
    let seen = upstream.seen().await;
    let request = &seen[0];
    assert_eq!(
        (request.method.as_str(), request.path.as_str()),
        ("POST", "/chat/7")
    );
    assert_eq!(request.body, "hello");
    assert_eq!(request.all("content-length"), ["5"]);
    assert_eq!(request.all("host"), ["chat.example"]);
    assert_eq!(request.all("x-forwarded-host"), ["chat.example"]);
    assert_eq!(request.all("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(request.all("x-idempotency-attempt"), ["1"]);
    assert_eq!(request.all("x-idempotency-token").len(), 1);
    assert_ne!(request.all("x-idempotency-token"), ["99"]);
    for gone in ["expect", "transfer-encoding", "connection", "x-mine", "te"] {
        assert!(request.all(gone).is_empty(), "{gone}: {request:?}");
    }
}

#[tokio::test]
async fn an_answer_loses_the_fields_of_its_connection_and_keeps_its_lines() {
    let upstream = Upstream::start().await;
    let gateway = Gateway::before(upstream.address).await;
    for replayed in [false, true] {
        let answer = gateway.deliver(TEXT).await;
        let headers = answer.headers();
        assert_eq!(answer.status(), StatusCode::CREATED);
        assert_eq!(headers.contains_key("idempotency-replayed"), replayed);
        for gone in ["connection", "x-hop", "keep-alive"] {
            assert!(!headers.contains_key(gone), "{gone}");
        }
        let lines: Vec<_> = headers.get_all("x-line").iter().collect();
        assert_eq!(lines, ["1", "2"]);
    }
}

#[tokio::test]
async fn what_was_cut_out_of_a_delivery_is_cut_off_its_length() {
    let upstream = Upstream::start().await;
    let gateway = Gateway::before(upstream.address).await;
    let two = include_str!("../fixtures/whatsapp/batch_two_messages.json");
    let regrouped = include_str!("../fixtures/whatsapp/batch_regrouped_redelivery.json");
    gateway.deliver(two).await;
    gateway.deliver(regrouped).await;
    let seen = upstream.seen().await;
    for request in &seen {
        assert_eq!(request.all("content-length"), [request.length.to_string()]);
    }
    assert!(seen[1].length < regrouped.len(), "nothing was cut out");
}
