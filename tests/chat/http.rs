//! HTTP by hand: what goes over the socket is what the test wrote, and what came back is kept
//! byte by byte.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longer than any wait of the server; reached only when something hangs.
const PATIENCE: Duration = Duration::from_mins(1);

/// What came back.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// The status line and the header lines, without their ends.
    pub(crate) head: Vec<String>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The value of a header line.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.iter().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.header("idempotency-replayed") == Some("true")
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// A GET, as bytes.
pub(crate) fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: chat\r\nconnection: close\r\n\r\n").into_bytes()
}

/// A POST of JSON, as bytes.
pub(crate) fn post(path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    post_declaring(path, headers, body, body.len())
}

/// A POST whose declared length need not be that of its body.
pub(crate) fn post_declaring(
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
    length: usize,
) -> Vec<u8> {
    let lines = headers
        .iter()
        .flat_map(|(name, value)| [*name, ": ", *value, "\r\n"]);
    let lines: String = lines.collect();
    format!(
        "POST {path} HTTP/1.1\r\nhost: chat\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n{lines}\r\n{body}"
    )
    .into_bytes()
}

/// Sends a request and reads the answer to its end.
///
/// An error is what a client has when it does not know whether its request arrived.
pub(crate) async fn exchange(address: SocketAddr, request: &[u8]) -> io::Result<Response> {
    let mut socket = connect(address).await?;
    socket.write_all(request).await?;
    read(&mut socket).await
}

/// Sends a request and closes the connection after a while, without reading an answer.
pub(crate) async fn send_and_leave(
    address: SocketAddr,
    request: &[u8],
    after: Duration,
) -> io::Result<()> {
    let mut socket = connect(address).await?;
    socket.write_all(request).await?;
    tokio::time::sleep(after).await;
    Ok(())
}

/// Sends what there is of a request, ends the sending side, and reads the answer if there is one.
pub(crate) async fn cut_short(address: SocketAddr, request: &[u8]) -> io::Result<Response> {
    let mut socket = connect(address).await?;
    socket.write_all(request).await?;
    socket.shutdown().await?;
    read(&mut socket).await
}

/// Connects as soon as there is a server: while one restarts, its clients wait.
async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    loop {
        match TcpStream::connect(address).await {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            other => return other,
        }
    }
}

async fn read(socket: &mut TcpStream) -> io::Result<Response> {
    let mut bytes = Vec::new();
    timeout(PATIENCE, socket.read_to_end(&mut bytes)).await??;
    parse(&bytes).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// `None` if the answer was cut.
fn parse(bytes: &[u8]) -> Option<Response> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(bytes.get(..end)?).ok()?;
    let head: Vec<String> = head.split("\r\n").map(str::to_owned).collect();
    let status = head.first()?.split(' ').nth(1)?.parse().ok()?;
    let response = Response {
        status,
        head,
        body: bytes.get(end + 4..)?.to_vec(),
    };
    let declared: usize = response.header("content-length")?.parse().ok()?;
    (declared == response.body.len()).then_some(response)
}
