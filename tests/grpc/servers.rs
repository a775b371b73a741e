//! The same calls by tonic's client to each server that speaks HTTP/2: axum, hyper and tonic.

use futures_util::TryStreamExt;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tonic::Code;
use tonic::metadata::MetadataMap;
use tower::ServiceBuilder;
use tower_idempotency::IdempotencyLayer;
use tower_idempotency::channel::IdempotencyKey;
use tower_idempotency::store::MemoryStore;

use crate::chat::{Chat, Client, Layered, Text, serve};

#[derive(Clone, Copy, Debug)]
enum Kind {
    Axum,
    Hyper,
    Tonic,
}

const ALL: [Kind; 3] = [Kind::Axum, Kind::Hyper, Kind::Tonic];

async fn start(kind: Kind) -> (Layered, Chat, Client) {
    let layer = IdempotencyLayer::new(MemoryStore::new(), IdempotencyKey::unscoped());
    let layer = layer.max_response(1000);
    if let Kind::Tonic = kind {
        let (chat, client) = serve(&layer).await;
        return (layer, chat, client);
    }
    let chat = Chat::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    match kind {
        Kind::Axum => {
            let router = axum::Router::new().fallback_service(chat.clone());
            let router = router.layer(layer.clone());
            tokio::spawn(axum::serve(listener, router).into_future());
        }
        Kind::Hyper | Kind::Tonic => {
            tokio::spawn(hyper_server(listener, layer.clone(), chat.clone()));
        }
    }
    (layer, chat, Client::of(address).await)
}

async fn hyper_server(listener: TcpListener, layer: Layered, chat: Chat) {
    let service = ServiceBuilder::new().layer(layer).service(chat);
    while let Ok((stream, _)) = listener.accept().await {
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            let server = auto::Builder::new(TokioExecutor::new()).http2_only();
            // It ends when the client leaves.
            server
                .serve_connection(TokioIo::new(stream), service)
                .await
                .ok();
        });
    }
}

#[tokio::test]
async fn a_call_is_replayed_and_another_under_its_key_is_refused() {
    for kind in ALL {
        let (layer, chat, client) = start(kind).await;
        let first = client.say("k", "hi").await.unwrap();
        let second = client.say("k", "hi").await.unwrap();
        assert_eq!(first.get_ref(), second.get_ref(), "{kind:?}");
        assert!(second.metadata().contains_key("idempotency-replayed"));
        let other = client.say("k", "ho").await.unwrap_err();
        assert_eq!(other.code(), Code::FailedPrecondition, "{kind:?}");
        assert_eq!((chat.runs(), layer.counts().replayed), (1, 1), "{kind:?}");
    }
}

#[tokio::test]
async fn the_messages_and_trailers_of_a_streaming_answer_are_replayed() {
    for kind in ALL {
        let (_, chat, client) = start(kind).await;
        let mut seen = Vec::new();
        for _ in 0..2 {
            let mut answer = client.spell("k", "abc").await.unwrap().into_inner();
            let letters: Vec<Text> = (&mut answer).try_collect().await.unwrap();
            let trailers = answer.trailers().await.unwrap();
            let trailers = trailers.map(MetadataMap::into_headers);
            seen.push((letters, trailers));
        }
        assert_eq!(seen.first(), seen.last(), "{kind:?}");
        assert_eq!(seen.first().unwrap().0, ["a", "b", "c"]);
        assert_eq!(chat.runs(), 1, "{kind:?}");
    }
}

#[tokio::test]
async fn an_error_at_the_head_or_behind_messages_runs_again() {
    for kind in ALL {
        let (layer, chat, client) = start(kind).await;
        for _ in 0..2 {
            let status = client.say("k", "fail").await.unwrap_err();
            assert_eq!(status.code(), Code::Internal, "{kind:?}");
            let letters = client.spell("l", "ab!").await.unwrap().into_inner();
            let status = letters.try_collect::<Vec<_>>().await.unwrap_err();
            assert_eq!(status.code(), Code::Unavailable, "{kind:?}");
        }
        assert_eq!((chat.runs(), layer.counts().released), (4, 4), "{kind:?}");
    }
}

#[tokio::test]
async fn an_answer_over_the_limit_comes_whole_and_its_repeat_is_told() {
    for kind in ALL {
        let (_, chat, client) = start(kind).await;
        let long = "a long text ".repeat(200);
        let first = client.say("k", &long).await.unwrap();
        assert!(first.get_ref().starts_with(&long), "{kind:?}");
        let status = client.say("k", &long).await.unwrap_err();
        assert_eq!(status.code(), Code::FailedPrecondition, "{kind:?}");
        assert!(status.message().contains("succeeded"), "{status:?}");
        assert_eq!(chat.runs(), 1, "{kind:?}");
    }
}

#[tokio::test]
async fn a_call_that_streams_its_messages_is_refused() {
    for kind in ALL {
        let (_, chat, client) = start(kind).await;
        let two = futures_util::stream::iter(["a".to_owned(), "b".to_owned()]);
        let status = client.join("k", two).await.unwrap_err();
        assert_eq!(
            (status.code(), chat.runs()),
            (Code::InvalidArgument, 0),
            "{kind:?}"
        );
    }
}
