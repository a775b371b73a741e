//! Calls with one message: replayed whole, refused by the right code.

use std::time::Duration;

use futures_util::TryStreamExt;
use http::HeaderMap;
use tonic::codec::CompressionEncoding;
use tonic::{Code, Response, Status};
use tower_idempotency::IdempotencyLayer;
use tower_idempotency::channel::IdempotencyKey;
use tower_idempotency::store::MemoryStore;

use crate::chat::{Layered, Text, serve};

fn layer() -> Layered {
    IdempotencyLayer::new(MemoryStore::new(), IdempotencyKey::unscoped())
}

/// Metadata without what may differ between a first answer and its replay.
fn metadata<T>(response: &Response<T>) -> HeaderMap {
    let mut headers = response.metadata().clone().into_headers();
    headers.remove("date");
    headers.remove("idempotency-replayed");
    headers
}

fn is_replayed<T>(response: &Response<T>) -> bool {
    response.metadata().contains_key("idempotency-replayed")
}

fn refused<T: std::fmt::Debug>(answer: Result<T, Status>) -> (Code, String) {
    let status = answer.unwrap_err();
    (status.code(), status.message().to_owned())
}

/// Field cases B36, P22.
#[tokio::test]
async fn a_replay_has_the_message_the_metadata_and_the_trailers_of_the_first() {
    let layer = layer();
    let (chat, client) = serve(&layer).await;
    let first = client.say("k", "hi").await.unwrap();
    let second = client.say("k", "hi").await.unwrap();
    assert!(!is_replayed(&first) && is_replayed(&second));
    assert_eq!(first.get_ref(), second.get_ref());
    assert_eq!(metadata(&first), metadata(&second));
    assert_eq!(chat.runs(), 1);
}

#[tokio::test]
async fn messages_of_a_streaming_answer_come_as_they_are_made_and_are_replayed() {
    let layer = layer();
    let (chat, client) = serve(&layer).await;
    let first = client.spell("k", "a.bc").await.unwrap();
    let before = metadata(&first);
    let mut first = first.into_inner();
    assert_eq!(first.message().await.unwrap().unwrap(), "a");
    assert_eq!(layer.counts().recorded, 0);
    chat.go.notify_one();
    let mut letters: Vec<Text> = vec!["a".into()];
    while let Some(letter) = first.message().await.unwrap() {
        letters.push(letter);
    }
    let second = client.spell("k", "a.bc").await.unwrap();
    assert_eq!(metadata(&second), before);
    let mut second = second.into_inner();
    let replayed: Vec<Text> = (&mut second).try_collect().await.unwrap();
    assert_eq!((replayed, chat.runs()), (letters, 1));
    let before = first.trailers().await.unwrap().unwrap().into_headers();
    let after = second.trailers().await.unwrap().unwrap().into_headers();
    assert_eq!(after, before);
}

/// Field case B36.
#[tokio::test]
async fn an_error_runs_again_wherever_its_status_stands() {
    let layer = layer();
    let (chat, client) = serve(&layer).await;
    for run in 1..=2 {
        let (code, message) = refused(client.say("k", "fail").await);
        assert_eq!((code, message), (Code::Internal, format!("run {run} ⚠")));
    }
    for run in 3..=4 {
        let letters = client.spell("l", "ab!").await.unwrap().into_inner();
        let status = letters.try_collect::<Vec<_>>().await.unwrap_err();
        assert_eq!((status.code(), chat.runs()), (Code::Unavailable, run));
    }
    assert_eq!(layer.counts().released, 4);
}

#[tokio::test]
async fn while_it_runs_a_repeat_is_aborted_and_told_when_to_come_again() {
    let layer = layer().wait(Duration::ZERO);
    let (chat, client) = serve(&layer).await;
    let first = {
        let client = client.clone();
        tokio::spawn(async move { client.say("k", "wait").await })
    };
    while chat.runs() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let status = client.say("k", "wait").await.unwrap_err();
    assert_eq!(status.code(), Code::Aborted);
    let pushback = status.metadata().get("grpc-retry-pushback-ms").unwrap();
    let pushback: u64 = pushback.to_str().unwrap().parse().unwrap();
    assert!((1000..=30_000).contains(&pushback), "{pushback}");
    chat.go.notify_one();
    first.await.unwrap().unwrap();
    assert_eq!(chat.runs(), 1);
}

#[tokio::test]
async fn refusals_are_statuses_with_the_right_code() {
    let channel = IdempotencyKey::unscoped().required();
    let layer = IdempotencyLayer::new(MemoryStore::new(), channel).max_request(100);
    let (chat, client) = serve(&layer).await;
    client.say("k", "hi").await.unwrap();
    let (code, message) = refused(client.say("k", "ho").await);
    assert_eq!(code, Code::FailedPrecondition);
    assert!(message.contains("The body differs"), "{message}");
    let (code, message) = refused(client.say("", "hi").await);
    assert_eq!(code, Code::InvalidArgument);
    assert!(message.contains("required"), "{message}");
    let (code, message) = refused(client.say("\"broken", "hi").await);
    assert_eq!(code, Code::InvalidArgument);
    assert!(message.contains("quoted"), "{message}");
    let (code, _) = refused(client.say("l", &"long".repeat(100)).await);
    assert_eq!(code, Code::ResourceExhausted);
    assert_eq!(chat.runs(), 1);
}

#[tokio::test]
async fn a_store_that_cannot_tell_makes_the_call_unavailable() {
    let full = MemoryStore::bounded(0, 0);
    let layer = IdempotencyLayer::new(full, IdempotencyKey::unscoped());
    let (chat, client) = serve(&layer).await;
    let status = client.say("k", "hi").await.unwrap_err();
    assert_eq!((status.code(), chat.runs()), (Code::Unavailable, 0));
    assert!(status.metadata().contains_key("grpc-retry-pushback-ms"));
}

#[tokio::test]
async fn an_answer_over_the_limit_reaches_its_caller_and_a_repeat_is_told() {
    let layer = layer().max_response(8);
    let (chat, client) = serve(&layer).await;
    let first = client.say("k", "a long text").await.unwrap();
    assert_eq!(first.get_ref(), "a long text 1");
    let (code, message) = refused(client.say("k", "a long text").await);
    assert_eq!(code, Code::FailedPrecondition);
    assert!(message.contains("succeeded"), "{message}");
    assert_eq!(chat.runs(), 1);
}

#[tokio::test]
async fn a_compressed_answer_is_replayed_only_to_a_client_that_accepts_it() {
    let layer = layer();
    let (chat, client) = serve(&layer).await;
    let mut accepting = client.clone();
    accepting.grpc = accepting.grpc.accept_compressed(CompressionEncoding::Gzip);
    let first = accepting.say("k", "hi").await.unwrap();
    assert_eq!(first.metadata().get("grpc-encoding").unwrap(), "gzip");
    let (code, message) = refused(client.say("k", "hi").await);
    assert_eq!(code, Code::FailedPrecondition);
    assert!(message.contains("coding"), "{message}");
    let replay = accepting.say("k", "hi").await.unwrap();
    assert_eq!((replay.get_ref(), chat.runs()), (first.get_ref(), 1));
}

#[tokio::test]
async fn a_call_for_browsers_that_nothing_translates_is_refused_and_not_let_through() {
    let layer = layer();
    let (chat, client) = serve(&layer).await;
    let response = reqwest::Client::builder()
        .http2_prior_knowledge()
        .build()
        .unwrap()
        .post(format!("http://{}/chat.Chat/Say", client.address))
        .header("content-type", "application/grpc-web+proto")
        .header("idempotency-key", "k")
        .body(vec![0, 0, 0, 0, 0]);
    let response = response.send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/grpc-web");
    assert_eq!(response.headers()["grpc-status"], "12");
    assert_eq!(chat.runs(), 0);
}
