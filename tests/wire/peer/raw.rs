//! HTTP/1.1 by hand, over any stream.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::peer::{Ask, Seen};

/// A connection, and what was read ahead of it.
pub(crate) struct Raw<I> {
    pub(crate) io: I,
    read: Vec<u8>,
}

impl Raw<TcpStream> {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let io = TcpStream::connect(address).await.unwrap();
        io.set_nodelay(true).unwrap();
        Self::new(io)
    }
}

/// The head of a request, with its length or chunked as `framing` says.
pub(crate) fn head(ask: &Ask, framing: &str) -> String {
    let mut head = format!("POST /messages HTTP/1.1\r\nhost: chat.example\r\n{framing}\r\n");
    for (name, value) in &ask.headers {
        head = head + name + ": " + value + "\r\n";
    }
    head + "\r\n"
}

impl<I: AsyncRead + AsyncWrite + Unpin> Raw<I> {
    pub(crate) fn new(io: I) -> Self {
        Self {
            io,
            read: Vec::new(),
        }
    }

    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.io.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Sends a request with its length, and reads the answer.
    pub(crate) async fn ask(&mut self, ask: &Ask) -> Seen {
        let framing = format!("content-length: {}", ask.body.len());
        self.write(head(ask, &framing)).await;
        self.write(&ask.body).await;
        self.answer().await.unwrap()
    }

    /// The next answer; `None` if the connection closes before it is whole.
    pub(crate) async fn answer(&mut self) -> Option<Seen> {
        let mut seen = loop {
            let seen = self.answer_head().await?;
            if seen.status == 101 || seen.status >= 200 {
                break seen;
            }
        };
        if matches!(seen.status, 101 | 204 | 304) {
            return Some(seen);
        }
        if seen.all("transfer-encoding") == [b"chunked"] {
            self.chunks(&mut seen).await?;
        } else if let [length] = seen.all("content-length")[..] {
            let length = str::from_utf8(length).unwrap().parse().unwrap();
            seen.body = self.take(length).await?;
        }
        Some(seen)
    }

    /// The next head, that of an interim answer too.
    pub(crate) async fn answer_head(&mut self) -> Option<Seen> {
        let line = self.line().await?;
        let status = str::from_utf8(&line[9..12]).unwrap().parse().unwrap();
        Some(Seen::new(status, self.fields().await?))
    }

    /// One chunk of a body; empty at its end.
    pub(crate) async fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = self.line().await?;
        let size = usize::from_str_radix(str::from_utf8(&size).unwrap(), 16).unwrap();
        if size == 0 {
            return Some(Vec::new());
        }
        let chunk = self.take(size).await?;
        self.line().await?;
        Some(chunk)
    }

    async fn chunks(&mut self, seen: &mut Seen) -> Option<()> {
        loop {
            let chunk = self.chunk().await?;
            if chunk.is_empty() {
                seen.trailers = self.fields().await?;
                return Some(());
            }
            seen.body.extend(chunk);
        }
    }

    pub(crate) async fn fields(&mut self) -> Option<Vec<(String, Vec<u8>)>> {
        let mut fields = Vec::new();
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                return Some(fields);
            }
            let colon = line.iter().position(|byte| *byte == b':').unwrap();
            let name = str::from_utf8(&line[..colon]).unwrap().to_ascii_lowercase();
            fields.push((name, line[colon + 1..].trim_ascii().to_vec()));
        }
    }

    async fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.read.windows(2).position(|pair| pair == b"\r\n") {
                let mut line: Vec<u8> = self.read.drain(..end + 2).collect();
                line.truncate(end);
                return Some(line);
            }
            self.more().await?;
        }
    }

    pub(crate) async fn take(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.read.len() < length {
            self.more().await?;
        }
        Some(self.read.drain(..length).collect())
    }

    async fn more(&mut self) -> Option<()> {
        match self.io.read_buf(&mut self.read).await {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(()),
        }
    }

    /// Whether the connection has ended, and nothing more came on it.
    pub(crate) async fn ends_here(mut self) -> bool {
        self.read.is_empty() && self.more().await.is_none()
    }
}
