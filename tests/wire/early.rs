//! An answer that is known before the request has come whole reaches its client, and the
//! connection can be used again or is closed in order.

use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::app::App;
use crate::peer::raw::{Raw, head};
use crate::peer::{Ask, Seen, curl};
use crate::server::{Kind, Server, connection, layer, layered};

const LARGE: usize = 20 << 20;

fn is_too_large(seen: &Seen) -> bool {
    seen.status == 413 && seen.text().contains("request-too-large")
}

/// A client that looks for its answer only once it has sent everything.
async fn send_all_then_look(raw: &mut Raw<tokio::net::TcpStream>, framing: &str, body: &[u8]) {
    raw.write(head(&Ask::new("k", "echo"), framing)).await;
    raw.write(body).await;
}

fn chunked(body: &[u8]) -> Vec<u8> {
    let mut chunks = Vec::new();
    for chunk in body.chunks(64 << 10) {
        chunks.extend(format!("{:x}\r\n", chunk.len()).bytes());
        chunks.extend(chunk);
        chunks.extend(b"\r\n");
    }
    chunks.extend(b"0\r\n\r\n");
    chunks
}

#[tokio::test]
async fn a_large_upload_is_answered_and_its_connection_goes_on() {
    let body = vec![b'x'; LARGE];
    for kind in [Kind::Axum, Kind::Hyper1] {
        let server = Server::start(kind, layer()).await;
        let mut raw = Raw::connect(server.address).await;
        send_all_then_look(&mut raw, &format!("content-length: {LARGE}"), &body).await;
        assert!(is_too_large(&raw.answer().await.unwrap()));
        send_all_then_look(&mut raw, "transfer-encoding: chunked", &chunked(&body)).await;
        assert!(is_too_large(&raw.answer().await.unwrap()));
        let seen = raw.ask(&Ask::new("k", "echo")).await;
        assert_eq!((seen.status, seen.is_replayed()), (200, false));
        assert_eq!(server.app.runs(), 1);
    }
}

#[tokio::test]
async fn a_refusal_by_the_head_alone_leaves_the_connection_usable() {
    let server = Server::start(Kind::Axum, layer()).await;
    let mut raw = Raw::connect(server.address).await;
    let twice = Ask::new("k", "echo").with("idempotency-key", "l");
    let seen = raw.ask(&twice.body(vec![b'x'; LARGE])).await;
    assert_eq!(seen.status, 400);
    assert!(seen.text().contains("malformed-key"), "{seen:?}");
    assert_eq!(raw.ask(&Ask::new("k", "echo")).await.status, 200);
}

/// Field case B89.
#[tokio::test]
async fn an_upload_beyond_every_bound_is_answered_and_cut() {
    let server = Server::start(Kind::Axum, layer()).await;
    let Raw { io, .. } = Raw::connect(server.address).await;
    let (reader, mut writer) = tokio::io::split(io);
    let sending = tokio::spawn(async move {
        use tokio::io::AsyncWriteExt;
        let framing = "transfer-encoding: chunked";
        let head = head(&Ask::new("k", "echo"), framing);
        writer.write_all(head.as_bytes()).await.unwrap();
        let chunk = [b"100000\r\n", vec![b'x'; 1 << 20].as_slice(), b"\r\n"].concat();
        let mut sent = 0;
        while writer.write_all(&chunk).await.is_ok() {
            sent += 1;
            assert!(sent < 1000, "the upload was never cut");
        }
        sent
    });
    let mut reader = Raw::new(tokio::io::join(reader, tokio::io::sink()));
    assert!(is_too_large(&reader.answer().await.unwrap()));
    assert!(reader.ends_here().await);
    let sent = sending.await.unwrap();
    assert!(sent < 100, "{sent} MiB");
    assert_eq!(server.app.runs(), 0);
}

#[tokio::test]
async fn curl_reads_its_answer_over_each_protocol_and_tls() {
    let plain = Server::start(Kind::Axum, layer()).await;
    let tls = tls_server().await;
    let (plain, tls) = (
        curl::url(plain.address),
        format!("https://localhost:{tls}/messages"),
    );
    for expect in ["expect:", "x-nothing: 1"] {
        curl_is_refused(&plain, ["--http1.1", "--header", expect]).await;
        curl_is_refused(&plain, ["--http2-prior-knowledge", "--header", expect]).await;
        curl_is_refused(&tls, ["--http1.1", "--header", expect]).await;
        curl_is_refused(&tls, ["--http2", "--header", expect]).await;
    }
}

async fn curl_is_refused(url: &str, options: [&str; 3]) {
    let large = Ask::new("k", "echo").body(vec![b'x'; LARGE]);
    match curl::ask(url, &options, &large).await {
        Some(Ok(seen)) => assert!(is_too_large(&seen), "{url} {options:?}: {seen:?}"),
        Some(Err(error)) => panic!("{url} {options:?}: {error}"),
        None => eprintln!("curl is not installed: skipped"),
    }
}

#[tokio::test]
async fn who_waits_to_be_told_to_go_on_is_told_to_for_a_message_and_its_repeat() {
    let server = Server::start(Kind::Axum, layer()).await;
    for replayed in [false, true] {
        let mut raw = Raw::connect(server.address).await;
        let expecting = Ask::new("k", "echo").with("expect", "100-continue");
        raw.write(head(&expecting, "content-length: 5")).await;
        assert_eq!(raw.answer_head().await.unwrap().status, 100);
        raw.write("hello").await;
        let seen = raw.answer().await.unwrap();
        assert_eq!((seen.status, seen.is_replayed()), (200, replayed));
        assert_eq!(seen.body, b"hello");
    }
}

#[tokio::test]
async fn who_waits_to_be_told_to_go_on_is_told_not_to_by_the_answer_alone() {
    let server = Server::start(Kind::Axum, layer()).await;
    let large = format!("content-length: {LARGE}");
    let malformed = Ask::new("k", "echo").with("idempotency-key", "l");
    for (ask, framing, status) in [
        (Ask::new("k", "echo"), large.as_str(), 413),
        (malformed, "content-length: 5", 400),
    ] {
        let mut raw = Raw::connect(server.address).await;
        raw.write(head(&ask.with("expect", "100-continue"), framing))
            .await;
        // Not a 100 first, and no connection on which the next request were taken for the body.
        let seen = raw.answer_head().await.unwrap();
        assert_eq!(seen.status, status);
        let length: usize = str::from_utf8(seen.all("content-length")[0])
            .unwrap()
            .parse()
            .unwrap();
        raw.take(length).await.unwrap();
        let closed = timeout(Duration::from_secs(5), raw.ends_here()).await;
        assert_eq!(closed, Ok(true));
    }
}

#[tokio::test]
async fn who_was_told_to_go_on_and_then_sends_too_much_still_reads_its_answer() {
    let server = Server::start(Kind::Axum, layer()).await;
    let mut raw = Raw::connect(server.address).await;
    let expecting = Ask::new("k", "echo").with("expect", "100-continue");
    raw.write(head(&expecting, "transfer-encoding: chunked"))
        .await;
    assert_eq!(raw.answer_head().await.unwrap().status, 100);
    raw.write(chunked(&vec![b'x'; LARGE])).await;
    assert!(is_too_large(&raw.answer().await.unwrap()));
    assert_eq!(raw.ask(&Ask::new("k", "echo")).await.status, 200);
}

/// A server behind TLS with a certificate of its own; gives its port.
async fn tls_server() -> u16 {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let service = layered(App::default(), layer());
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, service) = (acceptor.clone(), service.clone());
            tokio::spawn(async move {
                let stream = acceptor.accept(stream).await.unwrap();
                connection(Kind::Axum, stream, service).await;
            });
        }
    });
    port
}
