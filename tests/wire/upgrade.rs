//! Connections that become something else pass, carry bytes both ways, and are never recorded.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tower::{ServiceBuilder, service_fn};
use tower_idempotency::{BoxError, Disposition, RequestBody};

use crate::peer::Ask;
use crate::peer::raw::{Raw, head};
use crate::server::{Kind, Layered, connection, layer};

/// Echoes every byte of a connection that was upgraded, or of a tunnel.
async fn echo(
    mut request: Request<RequestBody<Incoming>>,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let io = TokioIo::new(upgrade.await.unwrap());
        let (mut reader, mut writer) = tokio::io::split(io);
        tokio::io::copy(&mut reader, &mut writer).await.ok();
    });
    let mut response = Response::new(Empty::new());
    // A handler that asks for a record does not get one.
    response.extensions_mut().insert(Disposition::Record);
    if request.method() != Method::CONNECT {
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert("connection", "upgrade".parse().unwrap());
        headers.insert("upgrade", "echo".parse().unwrap());
    }
    Ok(response)
}

async fn serve(layer: &Layered) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = ServiceBuilder::new()
        .layer(layer.clone())
        .service(service_fn(echo));
    let service = ServiceBuilder::new()
        .map_response(|response: Response<_>| {
            response.map(|body: tower_idempotency::ResponseBody<_>| body.map_err(BoxError::from))
        })
        .service(service);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(connection(Kind::Axum, stream, service.clone()));
        }
    });
    address
}

async fn echoes(io: &mut TcpStream) {
    io.write_all(b"ping").await.unwrap();
    let mut pong = [0; 4];
    io.read_exact(&mut pong).await.unwrap();
    assert_eq!(&pong, b"ping");
}

/// Field case B41.
#[tokio::test]
async fn an_upgrade_passes_each_time_with_and_without_a_key() {
    let layer = layer();
    let address = serve(&layer).await;
    for method in ["GET", "POST"] {
        for _ in 0..2 {
            let mut raw = Raw::connect(address).await;
            let framing = "connection: upgrade\r\nupgrade: echo";
            let head = head(&Ask::new("k", ""), framing).replacen("POST", method, 1);
            raw.write(head).await;
            let seen = raw.answer().await.unwrap();
            assert_eq!((seen.status, seen.is_replayed()), (101, false));
            assert_eq!(seen.all("upgrade"), [b"echo"]);
            echoes(&mut raw.io).await;
        }
    }
    let counts = layer.counts();
    assert_eq!((counts.runs, counts.recorded, counts.released), (2, 0, 2));
}

/// Field case B41.
#[tokio::test]
async fn a_tunnel_passes_although_its_request_has_no_end() {
    let layer = layer();
    let address = serve(&layer).await;
    let mut raw = Raw::connect(address).await;
    raw.write("CONNECT chat.example:80 HTTP/1.1\r\nidempotency-key: k\r\n\r\n")
        .await;
    let answer = timeout(Duration::from_secs(10), raw.answer_head()).await;
    assert_eq!(answer.unwrap().unwrap().status, 200);
    echoes(&mut raw.io).await;

    let io = TcpStream::connect(address).await.unwrap();
    let (send, h2) = h2::client::handshake(io).await.unwrap();
    tokio::spawn(async { drop(h2.await) });
    let request = Request::connect("chat.example:80").header("idempotency-key", "k");
    let mut send = send.ready().await.unwrap();
    let (answer, mut body) = send.send_request(request.body(()).unwrap(), false).unwrap();
    let answer = timeout(Duration::from_secs(10), answer)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(answer.status(), 200);
    body.send_data(Bytes::from_static(b"ping"), false).unwrap();
    assert_eq!(answer.into_body().data().await.unwrap().unwrap(), "ping");
    assert_eq!(layer.counts().runs, 0);
}
