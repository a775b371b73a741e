//! What an inbox measures.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tokio::time::sleep;
use tower::{BoxError, ServiceExt, service_fn};
use tower_idempotency::RequestBody;
use tower_idempotency::channel::Terms;
use tower_idempotency::inbox::{Front, Inbox, Letters};
use tower_idempotency::store::MemoryStore;
use tower_idempotency::watch::metric::{
    INBOX_ARRIVALS, INBOX_ATTEMPTS, INBOX_DEAD, INBOX_LINES, INBOX_OLDEST_SECONDS, INBOX_WAITING,
    RENEWALS, REPEAT_AGE_SECONDS, REQUESTS, STORE_SECONDS,
};

use crate::app::Notes;
use crate::seen::{Seen, seen};

/// Posts messages to an inbox of one attempt or two, and lets the worker handle them for a while.
fn inbox(attempts: u32, messages: &'static [(&'static str, &'static str)]) -> Seen {
    seen(move || async move {
        let store = MemoryStore::new();
        let inbox = Inbox::new(store.clone(), Notes(Terms::webhook("notes")))
            .may_lose_waiting()
            .attempts(attempts)
            .measure_every(Duration::from_secs(1));
        let (front, worker): (Front<_, _, _, Full<Bytes>>, _) =
            inbox.wrap(service_fn(handle)).unwrap();
        let handling = tokio::spawn(worker.run());
        for (id, body) in messages {
            let request = Request::post("/").header("id", *id);
            let request = request.body(Full::from(*body)).unwrap();
            let answer = front.clone().oneshot(request).await.unwrap();
            assert_eq!(answer.status(), 200);
            sleep(Duration::from_millis(700)).await;
        }
        sleep(Duration::from_secs(30)).await;
        handling.abort();
        let backlog = Letters::new(store).backlog().await.unwrap();
        assert_eq!(
            backlog.dead,
            u64::from(messages.iter().any(|(_, body)| *body == "fail"))
        );
    })
}

async fn handle(
    request: Request<RequestBody<Full<Bytes>>>,
) -> Result<Response<Full<Bytes>>, BoxError> {
    let body = request.into_body().collect().await?.to_bytes();
    match &body[..] {
        b"fail" => Ok(Response::builder().status(500).body(Full::default())?),
        b"slow" => std::future::pending().await,
        _ => Ok(Response::new(Full::default())),
    }
}

#[test]
fn arrivals_are_counted_by_how_far_the_first_one_is() {
    let seen = inbox(
        1,
        &[
            ("a", ""),
            ("a", ""),
            ("b", "fail"),
            ("b", "fail"),
            ("c", "slow"),
            ("c", "slow"),
        ],
    );
    let counted = ["new", "done", "dead", "waiting"];
    let counted = counted.map(|stage| seen.counted(INBOX_ARRIVALS, &["notes", stage]));
    assert_eq!(counted, [3, 1, 1, 1]);
    let requests = |outcome| seen.counted(REQUESTS, &["notes", "inbox", outcome]);
    assert_eq!((requests("stored"), requests("repeated")), (3, 3));
    assert_eq!(seen.measured(REPEAT_AGE_SECONDS, &["notes"]).len(), 3);
}

#[test]
fn attempts_are_counted_by_how_they_end() {
    let seen = inbox(2, &[("a", ""), ("b", "fail")]);
    let counted = ["handled", "failed", "dead"];
    let counted = counted.map(|end| seen.counted(INBOX_ATTEMPTS, &["notes", end]));
    assert_eq!(counted, [1, 1, 1]);
}

#[test]
fn what_waits_and_what_is_dead_is_gauged() {
    let seen = inbox(1, &[("b", "fail"), ("c", "slow")]);
    let gauges = [INBOX_WAITING, INBOX_LINES, INBOX_DEAD].map(|it| seen.gauged(it).to_string());
    assert_eq!(gauges, ["1", "1", "1"]);
    // By the wall clock, for which hardly any time has passed.
    assert!((0.0..60.0).contains(&seen.gauged(INBOX_OLDEST_SECONDS)));
    // By the worker once a second, and once by the test.
    let looks = seen.measured(STORE_SECONDS, &["backlog", "ok"]).len();
    assert!((28..=33).contains(&looks), "{looks}");
}

#[test]
fn renewals_of_turns_are_counted() {
    let seen = inbox(1, &[("c", "slow")]);
    // Every ten seconds; whether also at the start is the worker's choice.
    assert!((3..=4).contains(&seen.counted(RENEWALS, &["turn", "renewed"])));
}
