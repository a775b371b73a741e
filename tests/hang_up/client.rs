//! A client that sends a message, hangs up at a random moment, and comes back for its answer.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use http::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// One logical send.
struct Message {
    address: SocketAddr,
    key: String,
    body: String,
}

/// How a client goes away.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// HTTP/1, the connection is closed.
    Close,
    /// HTTP/1, the connection is reset.
    Reset,
    /// HTTP/2, the stream is reset.
    Cancel,
    /// HTTP/2, the connection is closed.
    Vanish,
}

const AT_ONCE: usize = 100;

/// So many clients, each with a message of its own. Each comes back until it has its answer.
pub(crate) async fn all(address: SocketAddr, round: usize, clients: usize) {
    let every = (0..clients).map(|client| send_until_answered(address, round, client));
    let every = stream::iter(every).buffer_unordered(AT_ONCE);
    every.for_each(|()| async {}).await;
}

async fn send_until_answered(address: SocketAddr, round: usize, client: usize) {
    let message = Message {
        address,
        key: format!("{round}-{client}"),
        body: format!("message {client} of round {round}, which is long enough to be cut"),
    };
    let way = match client % 4 {
        0 => Way::Close,
        1 => Way::Reset,
        2 => Way::Cancel,
        _ => Way::Vanish,
    };
    message.hang_up(way).await;
    loop {
        // Any client may come back over the other protocol.
        let answer = if rand::random() {
            message.over_http1().await
        } else {
            message.over_http2().await
        };
        match answer {
            Some((200, body)) => return assert_eq!(body, message.body, "{}", message.key),
            // The first attempt still runs.
            Some((409, _)) => sleep(Duration::from_millis(5)).await,
            other => panic!("{way:?} {}: {other:?}", message.key),
        }
    }
}

impl Message {
    /// Sends, and goes at a random moment of the next milliseconds: while it connects, in the
    /// head, in the body, in the run, in the answer, or after it.
    async fn hang_up(&self, way: Way) {
        let moment =
            Duration::from_micros(rand::random_range(0..8_000) << rand::random_range(0..5));
        match way {
            Way::Close => drop(timeout(moment, self.over_http1()).await),
            Way::Reset => {
                let stream = TcpStream::connect(self.address).await.unwrap();
                stream.set_zero_linger().unwrap();
                drop(timeout(moment, self.exchange(stream)).await);
            }
            Way::Vanish => drop(timeout(moment, self.over_http2()).await),
            Way::Cancel => {
                let stream = TcpStream::connect(self.address).await.unwrap();
                let (mut send, connection) = h2::client::handshake(stream).await.unwrap();
                let connection = tokio::spawn(async { drop(connection.await) });
                drop(timeout(moment, self.stream(&mut send)).await);
                sleep(Duration::from_millis(1)).await;
                drop(send);
                connection.abort();
            }
        }
    }

    async fn over_http1(&self) -> Option<(u16, String)> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        self.exchange(stream).await
    }

    /// Sends in pieces, and reads until the server closes.
    async fn exchange(&self, mut stream: TcpStream) -> Option<(u16, String)> {
        let (key, length) = (&self.key, self.body.len());
        let request = format!(
            "POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\nidempotency-key: {key}\r\n\
             content-length: {length}\r\n\r\n{}",
            self.body
        );
        for piece in request.as_bytes().chunks(40) {
            stream.write_all(piece).await.ok()?;
            tokio::task::yield_now().await;
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        let status = answer.get(9..12)?.parse().ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        if !head.contains("transfer-encoding") {
            return Some((status, body.to_owned()));
        }
        let chunks = body.split("\r\n").skip(1).step_by(2);
        Some((status, chunks.collect()))
    }

    async fn over_http2(&self) -> Option<(u16, String)> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (mut send, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::select! {
            answer = self.stream(&mut send) => answer,
            _ = connection => None,
        }
    }

    async fn stream(&self, send: &mut h2::client::SendRequest<Bytes>) -> Option<(u16, String)> {
        let request = Request::post("http://x/").header("idempotency-key", &self.key);
        let request = request.body(()).unwrap();
        let mut send = send.clone().ready().await.ok()?;
        let (answer, mut body) = send.send_request(request, false).ok()?;
        let (first, second) = self.body.split_at(20);
        body.send_data(Bytes::copy_from_slice(first.as_bytes()), false)
            .ok()?;
        tokio::task::yield_now().await;
        body.send_data(Bytes::copy_from_slice(second.as_bytes()), true)
            .ok()?;
        let answer = answer.await.ok()?;
        let (status, mut body) = (answer.status().as_u16(), answer.into_body());
        let mut whole = Vec::new();
        while let Some(data) = body.data().await {
            whole.extend(data.ok()?);
        }
        Some((status, String::from_utf8(whole).unwrap()))
    }
}
