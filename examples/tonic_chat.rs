//! The layer before a tonic server, and a client that sends a call twice.
//!
//! `cargo run --example tonic_chat`. The service is written by hand, so that no `protoc` is needed.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]
#![expect(clippy::disallowed_methods, reason = "the server is a task")]

use std::convert::Infallible;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use tokio::net::TcpListener;
use tonic::body::Body;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::service_fn;
use tower_idempotency::channel::{IdempotencyKey, Scope};
use tower_idempotency::store::MemoryStore;
use tower_idempotency::{BoxError, Claimed, IdempotencyLayer};

type Codec = ProstCodec<String, String>;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let channel = IdempotencyKey::scoped_by(Scope::header("x-user"));
    let idempotency = IdempotencyLayer::new(MemoryStore::new(), channel);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = Server::builder()
        .layer(idempotency.clone())
        .add_service(Chat);
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));

    let channel = Channel::from_shared(format!("http://{address}"))?
        .connect()
        .await?;
    for _ in 0..2 {
        let mut call = Request::new("hello".to_owned());
        call.metadata_mut().insert("x-user", "ann".parse()?);
        call.metadata_mut().insert("idempotency-key", "1".parse()?);
        let mut client = tonic::client::Grpc::new(channel.clone());
        client.ready().await?;
        let path = http::uri::PathAndQuery::from_static("/chat.Chat/Say");
        let answer: Response<String> = client.unary(call, path, Codec::default()).await?;
        println!("{:?} {}", answer.metadata(), answer.get_ref());
    }
    println!("{:?}", idempotency.counts());
    Ok(())
}

/// `service Chat { rpc Say(google.protobuf.StringValue) returns (google.protobuf.StringValue); }`
#[derive(Clone)]
struct Chat;

async fn say(call: Request<String>) -> Result<Response<String>, Status> {
    // A message that fails is no record: its repeat runs again.
    let claimed = call.extensions().get::<Claimed>();
    let claimed = claimed.ok_or_else(|| Status::invalid_argument("a key is required"))?;
    let key = claimed
        .messages()
        .iter()
        .map(|message| message.key().id())
        .collect::<String>();
    Ok(Response::new(format!(
        "{} is message {key}",
        call.get_ref()
    )))
}

impl tonic::server::NamedService for Chat {
    const NAME: &'static str = "chat.Chat";
}

impl tower::Service<http::Request<Body>> for Chat {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: http::Request<Body>) -> Self::Future {
        Box::pin(async {
            let mut grpc = tonic::server::Grpc::new(Codec::default());
            Ok(match call.uri().path() {
                "/chat.Chat/Say" => grpc.unary(service_fn(say), call).await,
                _ => Status::unimplemented("there is no such method").into_http(),
            })
        })
    }
}
