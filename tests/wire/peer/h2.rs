//! HTTP/2 frame by frame, by the `h2` crate.

use std::net::SocketAddr;

use bytes::Bytes;
use h2::SendStream;
use h2::client::{ResponseFuture, SendRequest};
use http::{HeaderMap, Request};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::peer::{Ask, Seen};

/// A connection.
pub(crate) struct H2 {
    send: SendRequest<Bytes>,
    task: JoinHandle<()>,
}

impl Drop for H2 {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl H2 {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let io = TcpStream::connect(address).await.unwrap();
        io.set_nodelay(true).unwrap();
        let (send, connection) = h2::client::handshake(io).await.unwrap();
        let task = tokio::spawn(async { drop(connection.await) });
        Self { send, task }
    }

    /// Sends the head of a request; the body is the caller's to send.
    pub(crate) async fn begin(
        &mut self,
        ask: &Ask,
        length: Option<usize>,
    ) -> (ResponseFuture, SendStream<Bytes>) {
        let mut request = Request::post("http://chat.example/messages");
        for (name, value) in &ask.headers {
            request = request.header(name, value);
        }
        if let Some(length) = length {
            request = request.header("content-length", length);
        }
        let mut send = self.send.clone().ready().await.unwrap();
        send.send_request(request.body(()).unwrap(), false).unwrap()
    }

    /// Sends a request without announcing its length, and reads the answer.
    pub(crate) async fn ask(&mut self, ask: &Ask) -> Seen {
        let (answer, mut body) = self.begin(ask, None).await;
        body.send_data(ask.body.clone().into(), true).unwrap();
        answer_of(answer).await.unwrap()
    }
}

pub(crate) async fn answer_of(answer: ResponseFuture) -> Result<Seen, h2::Error> {
    let (head, mut body) = answer.await?.into_parts();
    let mut seen = Seen::new(head.status.as_u16(), lines(&head.headers));
    while let Some(data) = body.data().await {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
        seen.body.extend(data);
    }
    if let Some(trailers) = body.trailers().await? {
        seen.trailers = lines(&trailers);
    }
    Ok(seen)
}

fn lines(headers: &HeaderMap) -> Vec<(String, Vec<u8>)> {
    let line = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (name.as_str().to_owned(), value.as_bytes().to_vec())
    };
    headers.iter().map(line).collect()
}
