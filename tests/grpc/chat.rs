//! A chat service with a method of each of gRPC's four kinds, and a client of it.

use std::convert::Infallible;
use std::future::ready;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, Stream, StreamExt, TryStreamExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic::server::Grpc;
use tonic::transport::{Channel, Server};
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tower_idempotency::channel::IdempotencyKey;
use tower_idempotency::store::MemoryStore;
use tower_idempotency::{BoxError, IdempotencyLayer};

/// The one message of the service: a text.
pub(crate) type Text = String;
pub(crate) type Codec = ProstCodec<Text, Text>;
pub(crate) type Layered = IdempotencyLayer<MemoryStore, IdempotencyKey>;
type Texts = Pin<Box<dyn Stream<Item = Result<Text, Status>> + Send>>;

/// Counts the calls of its methods.
#[derive(Clone, Default)]
pub(crate) struct Chat {
    runs: Arc<AtomicU64>,
    /// Lets a call that waits for it go on.
    pub(crate) go: Arc<Notify>,
}

impl Chat {
    pub(crate) fn runs(&self) -> u64 {
        self.runs.load(Ordering::SeqCst)
    }

    /// Answers `fail` with an error, and `wait` when it is told to go on.
    async fn say(self, text: Text) -> Result<Response<Text>, Status> {
        let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        if text == "wait" {
            self.go.notified().await;
        }
        if text.starts_with("fail") {
            return Err(Status::new(Code::Internal, format!("run {run} ⚠")));
        }
        let mut response = Response::new(format!("{text} {run}"));
        let metadata = response.metadata_mut();
        metadata.insert("x-run", run.to_string().parse().unwrap());
        metadata.append_bin(
            "x-blob-bin",
            tonic::metadata::BinaryMetadataValue::from_bytes(b"\0\xff"),
        );
        Ok(response)
    }

    /// Answers with each letter; `.` is made when it is told to go on, and `!` is an error.
    fn spell(&self, text: &Text) -> Texts {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let go = Arc::clone(&self.go);
        let letters: Vec<char> = text.chars().collect();
        Box::pin(stream::iter(letters).then(move |it| letter(it, Arc::clone(&go))))
    }

    /// Joins all texts into one.
    async fn join(self, texts: Streaming<Text>) -> Result<Response<Text>, Status> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let texts: Vec<Text> = texts.try_collect().await?;
        Ok(Response::new(texts.join(" ")))
    }

    /// Greets, and answers each text as it comes.
    fn talk(&self, texts: Streaming<Text>) -> Texts {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let answers = texts.map_ok(|text| format!("re: {text}"));
        let greeting = stream::once(ready(Ok("hello".to_owned())));
        Box::pin(greeting.chain(answers))
    }
}

async fn letter(letter: char, go: Arc<Notify>) -> Result<Text, Status> {
    match letter {
        '!' => return Err(Status::unavailable("no more letters")),
        '.' => go.notified().await,
        _ => {}
    }
    Ok(letter.to_string())
}

/// What `protoc` would write for the four methods.
impl<B> tower::Service<http::Request<B>> for Chat
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError> + Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let chat = self.clone();
        let mut grpc = Grpc::new(Codec::default()).send_compressed(CompressionEncoding::Gzip);
        Box::pin(async move {
            let method = request.uri().path().rsplit('/').next().unwrap_or_default();
            Ok(match method {
                "Say" => {
                    let say = |text: Request<Text>| chat.clone().say(text.into_inner());
                    grpc.unary(tower::service_fn(say), request).await
                }
                "Spell" => {
                    let spell =
                        |text: Request<Text>| ready(Ok(Response::new(chat.spell(text.get_ref()))));
                    grpc.server_streaming(tower::service_fn(spell), request)
                        .await
                }
                "Join" => {
                    let join = |texts: Request<_>| chat.clone().join(texts.into_inner());
                    grpc.client_streaming(tower::service_fn(join), request)
                        .await
                }
                "Talk" => {
                    let talk =
                        |texts: Request<_>| ready(Ok(Response::new(chat.talk(texts.into_inner()))));
                    grpc.streaming(tower::service_fn(talk), request).await
                }
                _ => Status::unimplemented("no such method").into_http(),
            })
        })
    }
}

impl tonic::server::NamedService for Chat {
    const NAME: &'static str = "chat.Chat";
}

/// A server with `layer` in front of the service, and a client of it.
pub(crate) async fn serve<C: tower_idempotency::channel::Channel>(
    layer: &IdempotencyLayer<MemoryStore, C>,
) -> (Chat, Client) {
    let chat = Chat::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    let server = Server::builder()
        .layer(layer.clone())
        .add_service(chat.clone());
    tokio::spawn(server.serve_with_incoming(incoming));
    (chat, Client::of(address).await)
}

/// A client whose calls carry a key.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) grpc: tonic::client::Grpc<Channel>,
}

impl Client {
    pub(crate) async fn of(address: SocketAddr) -> Self {
        let channel = Channel::from_shared(format!("http://{address}")).unwrap();
        let grpc = tonic::client::Grpc::new(channel.connect().await.unwrap());
        Self { address, grpc }
    }

    pub(crate) async fn say(&self, key: &str, text: &str) -> Result<Response<Text>, Status> {
        let mut grpc = self.ready().await;
        grpc.unary(keyed(key, text.to_owned()), path("Say"), Codec::default())
            .await
    }

    pub(crate) async fn spell(
        &self,
        key: &str,
        text: &str,
    ) -> Result<Response<Streaming<Text>>, Status> {
        let mut grpc = self.ready().await;
        grpc.server_streaming(keyed(key, text.to_owned()), path("Spell"), Codec::default())
            .await
    }

    pub(crate) async fn join(
        &self,
        key: &str,
        texts: impl Stream<Item = Text> + Send + 'static,
    ) -> Result<Response<Text>, Status> {
        let mut grpc = self.ready().await;
        grpc.client_streaming(keyed(key, texts), path("Join"), Codec::default())
            .await
    }

    pub(crate) async fn talk(
        &self,
        key: &str,
        texts: impl Stream<Item = Text> + Send + 'static,
    ) -> Result<Response<Streaming<Text>>, Status> {
        let mut grpc = self.ready().await;
        grpc.streaming(keyed(key, texts), path("Talk"), Codec::default())
            .await
    }

    async fn ready(&self) -> tonic::client::Grpc<Channel> {
        let mut grpc = self.grpc.clone();
        grpc.ready().await.unwrap();
        grpc
    }
}

/// A call with a key, unless it is empty.
pub(crate) fn keyed<T>(key: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    if !key.is_empty() {
        let key = key.parse().unwrap();
        request.metadata_mut().insert("idempotency-key", key);
    }
    request
}

fn path(method: &str) -> http::uri::PathAndQuery {
    format!("/chat.Chat/{method}").parse().unwrap()
}
