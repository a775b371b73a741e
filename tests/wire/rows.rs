//! What needs more than a message and its repeat, the same on every server.

use std::any::Any;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderName;
use tokio::time::{sleep, timeout};

use crate::peer::h2::{H2, answer_of};
use crate::peer::raw::{Raw, head};
use crate::peer::{Ask, Seen};
use crate::server::{ALL, Kind, Server, layer};

/// Sends over a connection of its own, in a protocol that the server speaks.
pub(crate) async fn ask(server: &Server, ask: &Ask) -> Seen {
    if server.kind.speaks_http1() {
        Raw::connect(server.address).await.ask(ask).await
    } else {
        H2::connect(server.address).await.ask(ask).await
    }
}

#[tokio::test]
async fn what_belongs_to_one_answer_is_not_replayed() {
    for kind in ALL {
        let server = Server::start(kind, layer()).await;
        let first = ask(&server, &Ask::new("k", "cookie")).await;
        assert_eq!(first.all("set-cookie"), [b"session=1"], "{kind:?}");
        assert_eq!(first.all(ALLOWED), [b"https://a"], "{kind:?}");
        let second = ask(&server, &Ask::new("k", "cookie")).await;
        assert!(second.is_replayed() && second.all("set-cookie").is_empty());
        assert!(second.all(ALLOWED).is_empty(), "{second:?}");
        assert_eq!(second.all("x-run"), [b"1"]);
        assert_eq!(second.body, first.body);
    }
}

const ALLOWED: &str = "access-control-allow-origin";

#[tokio::test]
async fn what_is_not_replayed_can_be_chosen() {
    for kind in ALL {
        let chosen = HeaderName::from_static("x-run");
        let server = Server::start(kind, layer().not_replayed([chosen])).await;
        ask(&server, &Ask::new("k", "cookie")).await;
        let second = ask(&server, &Ask::new("k", "cookie")).await;
        assert!(second.is_replayed() && second.all("x-run").is_empty());
        assert_eq!(second.all("set-cookie"), [b"session=1"], "{kind:?}");
    }
}

/// Field case P23.
#[tokio::test]
async fn a_body_over_the_limit_is_refused_and_nothing_is_claimed() {
    for kind in ALL {
        let server = Server::start(kind, layer().max_request(10)).await;
        let large = Ask::new("k", "echo").body("longer than ten");
        assert_eq!(ask(&server, &large).await.status, 413, "{kind:?}");
        let small = ask(&server, &Ask::new("k", "echo")).await;
        assert_eq!((small.status, small.is_replayed()), (200, false));
        assert_eq!(server.app.runs(), 1);
    }
}

#[tokio::test]
async fn another_request_under_the_key_is_refused() {
    for kind in ALL {
        let server = Server::start(kind, layer()).await;
        ask(&server, &Ask::new("k", "echo")).await;
        let other = ask(&server, &Ask::new("k", "echo").body("other")).await;
        assert_eq!(other.status, 422, "{kind:?}");
        assert!(other.text().contains("The body differs"), "{other:?}");
        assert_eq!(server.app.runs(), 1);
    }
}

/// Field cases B38, B82.
#[tokio::test]
async fn a_run_whose_client_hangs_up_is_recorded() {
    for kind in ALL {
        let server = Server::start(kind, layer()).await;
        let message = Ask::new("k", "waits");
        if kind.speaks_http1() {
            let mut raw = Raw::connect(server.address).await;
            raw.write(head(&message, "content-length: 5")).await;
            raw.write("hello").await;
            begun(&server).await;
        } else {
            let mut h2 = H2::connect(server.address).await;
            let (_answer, mut body) = h2.begin(&message, None).await;
            body.send_data(Bytes::from_static(b"hello"), true).unwrap();
            begun(&server).await;
        }
        until(|| server.layer.counts().detached == 1).await;
        server.app.go.notify_one();
        assert_eq!(server.layer.drain(Duration::from_secs(10)).await, 0);
        let repeat = ask(&server, &message).await;
        assert!(repeat.is_replayed(), "{kind:?}: {repeat:?}");
        assert_eq!((repeat.body, server.app.runs()), (b"at last".to_vec(), 1));
    }
}

async fn begun(server: &Server) {
    until(|| server.app.runs() > 0).await;
}

pub(crate) async fn until(it_is: impl Fn() -> bool + Send + Sync) {
    let all = async {
        while !it_is() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_mins(1), all).await.unwrap();
}

#[tokio::test]
async fn a_client_that_does_not_read_does_not_hold_its_record() {
    for kind in ALL {
        // Much more than the sockets and windows between the two hold.
        let server = Server::start(kind, layer().max_response(20 << 20)).await;
        let first = unread(&server, false).await;
        until(|| server.layer.counts().recorded == 1).await;
        drop(unread(&server, true).await);
        drop(first);
        assert_eq!(server.app.runs(), 1);
    }
}

/// An answer of which only the head is read, on a connection that stays open.
async fn unread(server: &Server, replayed: bool) -> Box<dyn Any> {
    let message = Ask::new("k", "long stream");
    if server.kind.speaks_http1() {
        let mut raw = Raw::connect(server.address).await;
        raw.write(head(&message, "content-length: 5")).await;
        raw.write("hello").await;
        let seen = raw.answer_head().await.unwrap();
        assert_eq!(seen.is_replayed(), replayed, "{seen:?}");
        return Box::new(raw);
    }
    let mut h2 = H2::connect(server.address).await;
    let (answer, mut body) = h2.begin(&message, None).await;
    body.send_data(Bytes::from_static(b"hello"), true).unwrap();
    let answer = answer.await.unwrap();
    let mark = answer.headers().contains_key("idempotency-replayed");
    assert_eq!(mark, replayed, "{answer:?}");
    Box::new((h2, answer))
}

/// Field case P37.
#[tokio::test]
async fn a_stream_flows_while_it_is_made() {
    for kind in ALL {
        let server = Server::start(kind, layer()).await;
        let flows = timeout(Duration::from_secs(20), flows(&server)).await;
        assert!(flows.is_ok(), "{kind:?}: it waits for its end");
        // Whoever has seen the end has seen a record.
        assert_eq!(server.layer.counts().recorded, 1, "{kind:?}");
    }
}

async fn flows(server: &Server) {
    if server.kind.speaks_http1() {
        flows_on_http1(server).await;
    } else {
        flows_on_http2(server).await;
    }
}

async fn flows_on_http1(server: &Server) {
    let mut raw = Raw::connect(server.address).await;
    raw.write(head(&Ask::new("k", "gated"), "content-length: 5"))
        .await;
    raw.write("hello").await;
    assert_eq!(raw.answer_head().await.unwrap().status, 200);
    assert_eq!(raw.chunk().await.unwrap(), b"a");
    assert_eq!(server.layer.counts().recorded, 0);
    server.app.go.notify_one();
    assert_eq!(raw.chunk().await.unwrap(), b"b");
    assert_eq!(raw.chunk().await.unwrap(), b"");
}

async fn flows_on_http2(server: &Server) {
    let mut h2 = H2::connect(server.address).await;
    let (answer, mut body) = h2.begin(&Ask::new("k", "gated"), None).await;
    body.send_data(Bytes::from_static(b"hello"), true).unwrap();
    let mut body = answer.await.unwrap().into_body();
    assert_eq!(body.data().await.unwrap().unwrap(), "a");
    assert_eq!(server.layer.counts().recorded, 0);
    server.app.go.notify_one();
    assert_eq!(body.data().await.unwrap().unwrap(), "b");
    while let Some(end) = body.data().await {
        assert_eq!(end.unwrap(), "");
    }
}

/// Field cases B40, P37.
#[tokio::test]
async fn an_answer_without_end_flows_on_and_its_repeat_is_told_that_it_was_not_kept() {
    for kind in ALL {
        let server = Server::start(kind, layer().max_response(50_000)).await;
        let message = Ask::new("k", "endless");
        if kind.speaks_http1() {
            endless_on_http1(&server, &message).await;
        } else {
            endless_on_http2(&server, &message).await;
        }
        // The client is gone, and nothing of its answer is left.
        assert_eq!(server.layer.drain(Duration::from_secs(10)).await, 0);
    }
}

/// How much of an answer without end is read.
const MUCH: usize = 500_000;

async fn endless_on_http1(server: &Server, message: &Ask) {
    let mut raw = Raw::connect(server.address).await;
    raw.write(head(message, "content-length: 5")).await;
    raw.write("hello").await;
    assert_eq!(raw.answer_head().await.unwrap().status, 200);
    let mut read = 0;
    while read < MUCH {
        read += raw.chunk().await.unwrap().len();
    }
    is_not_kept(server, message).await;
    assert!(!raw.chunk().await.unwrap().is_empty(), "it flows on");
}

async fn endless_on_http2(server: &Server, message: &Ask) {
    let mut h2 = H2::connect(server.address).await;
    let (answer, mut body) = h2.begin(message, None).await;
    body.send_data(Bytes::from_static(b"hello"), true).unwrap();
    let mut body = answer.await.unwrap().into_body();
    let mut read = 0;
    while read < MUCH {
        let data = body.data().await.unwrap().unwrap();
        body.flow_control().release_capacity(data.len()).unwrap();
        read += data.len();
    }
    is_not_kept(server, message).await;
    assert!(body.data().await.is_some(), "it flows on");
}

/// A repeat, while the first answer goes on.
async fn is_not_kept(server: &Server, message: &Ask) {
    let repeat = ask(server, message).await;
    assert_eq!((repeat.status, server.app.runs()), (409, 1), "{repeat:?}");
    assert!(repeat.text().contains("response-not-kept"), "{repeat:?}");
}

#[tokio::test]
async fn a_repeat_of_a_running_message_waits_and_gets_its_answer() {
    for kind in ALL {
        let server = Server::start(kind, layer()).await;
        let message = Ask::new("k", "waits");
        let repeat = async {
            begun(&server).await;
            ask(&server, &message).await
        };
        let goes_on = async {
            until(|| server.layer.counts().waited == 1).await;
            server.app.go.notify_one();
        };
        let (first, second, ()) = tokio::join!(ask(&server, &message), repeat, goes_on);
        assert!(second.is_replayed(), "{kind:?}: {second:?}");
        assert_eq!(second.unmarked(), first.unmarked());
    }
}

#[tokio::test]
async fn a_repeat_that_waited_in_vain_is_told_when_to_come_again() {
    for kind in ALL {
        let server = Server::start(kind, layer().wait(Duration::ZERO)).await;
        let message = Ask::new("k", "waits");
        let repeat = async {
            begun(&server).await;
            let repeat = ask(&server, &message).await;
            server.app.go.notify_one();
            repeat
        };
        let (first, second) = tokio::join!(ask(&server, &message), repeat);
        assert_eq!((first.status, second.status), (200, 409), "{kind:?}");
        assert_eq!(second.all("retry-after").len(), 1);
    }
}

/// Field case B82.
#[tokio::test]
async fn a_reset_answer_is_no_loss_to_its_run() {
    for kind in [Kind::Axum, Kind::Hyper2, Kind::Tonic] {
        let server = Server::start(kind, layer()).await;
        for reason in [h2::Reason::CANCEL, h2::Reason::NO_ERROR] {
            let before = server.app.runs();
            let message = Ask::new(&format!("{reason:?}"), "chunks");
            let mut h2 = H2::connect(server.address).await;
            let (answer, mut body) = h2.begin(&message, None).await;
            body.send_data(Bytes::from_static(b"hello"), true).unwrap();
            let mut stream = answer.await.unwrap().into_body();
            assert_eq!(stream.data().await.unwrap().unwrap(), "a");
            body.send_reset(reason);
            assert_eq!(server.layer.drain(Duration::from_secs(10)).await, 0);
            let (answer, mut body) = h2.begin(&message, None).await;
            body.send_data(Bytes::from_static(b"hello"), true).unwrap();
            let repeat = answer_of(answer).await.unwrap();
            assert!(repeat.is_replayed(), "{kind:?}: {repeat:?}");
            assert_eq!(
                (repeat.body, server.app.runs()),
                (b"ab".to_vec(), before + 1)
            );
        }
    }
}
