//! Calls that stream their requests: refused, or let pass, and never waited for without end.

use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt};
use http::request::Parts;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::Code;
use tower_idempotency::channel::{ByPath, IdempotencyKey, Refusal};
use tower_idempotency::store::MemoryStore;
use tower_idempotency::verify::Verified;
use tower_idempotency::{IdempotencyLayer, OnStreamingCall};

use crate::chat::{Layered, serve};

fn layer() -> Layered {
    IdempotencyLayer::new(MemoryStore::new(), IdempotencyKey::unscoped())
}

fn passing() -> Layered {
    layer().on_streaming_call(OnStreamingCall::PassUnprotected)
}

fn texts(texts: &[&str]) -> stream::Iter<std::vec::IntoIter<String>> {
    let texts: Vec<_> = texts.iter().map(|&text| text.to_owned()).collect();
    stream::iter(texts)
}

#[tokio::test]
async fn a_second_message_or_none_is_refused_at_once() {
    let layer = layer();
    let (chat, client) = serve(&layer).await;
    let began = Instant::now();
    for endless in [false, true] {
        let two = texts(&["a", "b"]);
        let two = if endless {
            two.chain(stream::pending()).boxed()
        } else {
            two.boxed()
        };
        let status = client.join("k", two).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().contains("streams"), "{status:?}");
    }
    let status = client.join("k", texts(&[])).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!((chat.runs(), layer.counts().refused), (0, 3));
}

#[tokio::test]
async fn an_upload_without_end_is_refused_without_being_read() {
    let layer = layer();
    let (chat, client) = serve(&layer).await;
    let (count, mut counted) = mpsc::unbounded_channel();
    let endless = stream::repeat_with(move || {
        count.send(()).ok();
        "x".repeat(1 << 20)
    });
    let refused = timeout(Duration::from_secs(20), client.join("k", endless)).await;
    assert_eq!(
        refused.unwrap().unwrap_err().code(),
        Code::ResourceExhausted
    );
    let mut sent = 0;
    while counted.recv().await.is_some() {
        sent += 1;
    }
    assert!(sent < 16, "{sent} MiB were taken");
    assert_eq!(chat.runs(), 0);
}

#[tokio::test]
async fn one_message_is_a_call_like_any_other_and_is_protected() {
    let layer = layer();
    let (chat, client) = serve(&layer).await;
    for _ in 0..2 {
        let answer = client.join("k", texts(&["one"])).await.unwrap();
        assert_eq!(answer.get_ref(), "one");
    }
    assert_eq!((chat.runs(), layer.counts().replayed), (1, 1));
}

#[tokio::test]
async fn a_conversation_that_waits_for_its_answer_is_refused_in_time() {
    let layer = layer().read_limit(Duration::from_millis(300));
    let (chat, client) = serve(&layer).await;
    for said in [&["first"][..], &[]] {
        let waiting = texts(said).chain(stream::pending());
        let refused = timeout(Duration::from_secs(10), client.talk("k", waiting)).await;
        let status = refused.unwrap().unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded);
    }
    assert_eq!(chat.runs(), 0);
}

#[tokio::test]
async fn a_streaming_call_passes_unprotected_where_that_is_spelled_out() {
    let layer = passing();
    let (chat, client) = serve(&layer).await;
    for run in 1..=2 {
        let answer = client.join("k", texts(&["a", "b", "c"])).await.unwrap();
        assert_eq!((answer.get_ref().as_str(), chat.runs()), ("a b c", run));
    }
    assert_eq!(layer.counts().unprotected, 2);
    // A call with one message is protected all the same.
    for _ in 0..2 {
        client.say("l", "hi").await.unwrap();
    }
    assert_eq!(chat.runs(), 3);
}

#[tokio::test]
async fn a_conversation_passes_although_each_side_waits_for_the_other() {
    let layer = passing();
    let (_, client) = serve(&layer).await;
    for speaks_first in [true, false] {
        let (say, mut said) = mpsc::unbounded_channel::<String>();
        let said = stream::poll_fn(move |cx| said.poll_recv(cx));
        if speaks_first {
            say.send("one".into()).unwrap();
        }
        let talk = timeout(Duration::from_secs(20), client.talk("k", said)).await;
        let mut answers = talk.unwrap().unwrap().into_inner();
        assert_eq!(answers.message().await.unwrap().unwrap(), "hello");
        if !speaks_first {
            say.send("one".into()).unwrap();
        }
        assert_eq!(answers.message().await.unwrap().unwrap(), "re: one");
        say.send("two".into()).unwrap();
        assert_eq!(answers.message().await.unwrap().unwrap(), "re: two");
        drop(say);
        assert_eq!(answers.message().await.unwrap(), None);
    }
    assert_eq!(layer.counts().unprotected, 2);
}

#[tokio::test]
async fn a_channel_that_speaks_for_some_methods_leaves_the_others_alone() {
    let channel = ByPath::new().at("/chat.Chat/Say", IdempotencyKey::unscoped());
    let layer = IdempotencyLayer::new(MemoryStore::new(), channel);
    let (chat, client) = serve(&layer).await;
    for _ in 0..2 {
        client.say("k", "hi").await.unwrap();
        client.join("k", texts(&["a", "b"])).await.unwrap();
    }
    assert_eq!((chat.runs(), layer.counts().replayed), (3, 1));
}

#[tokio::test]
async fn a_call_that_only_looks_like_a_stream_gets_past_no_verification() {
    let signature = |_: &Parts, body: &[u8]| match body {
        b"\0\0\0\0\x03\x0a\x01a" => Ok(()),
        _ => Err(Refusal::unverified("these are not the sender's bytes")),
    };
    let channel = Verified::new(IdempotencyKey::unscoped(), signature);
    let layer = IdempotencyLayer::new(MemoryStore::new(), channel)
        .on_streaming_call(OnStreamingCall::PassUnprotected);
    let (chat, client) = serve(&layer).await;
    let refused = client.join("k", texts(&["a", "b"])).await.unwrap_err();
    assert_eq!((refused.code(), chat.runs()), (Code::Unauthenticated, 0));
    let signed = client.join("k", texts(&["a"])).await.unwrap();
    assert_eq!((signed.get_ref().as_str(), chat.runs()), ("a", 1));
}
