//! An inbox that nobody works for.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tower::{ServiceExt, service_fn};
use tower_idempotency::channel::JsonPath;
use tower_idempotency::inbox::{Front, Inbox};
use tower_idempotency::store::MemoryStore;

use crate::log::Log;
use crate::said;

/// Accepts two messages, with a worker or without; gives how often something was said.
async fn accept(with_worker: bool) -> usize {
    Log::begin();
    let channel = JsonPath::new("hook", "$.id").unwrap().unverified();
    let inbox = Inbox::new(MemoryStore::new(), channel).may_lose_waiting();
    let handler =
        service_fn(|_| async { Ok::<_, Infallible>(Response::new(Full::<Bytes>::default())) });
    let (front, worker): (Front<_, _, _, Full<Bytes>>, _) = inbox.wrap(handler).unwrap();
    let (works, waits) = if with_worker {
        (Some(tokio::spawn(worker.run())), None)
    } else {
        (None, Some(worker))
    };
    tokio::task::yield_now().await;
    for id in [1, 2] {
        let body = Full::from(format!("{{\"id\": {id}}}"));
        let request = Request::post("/").body(body).unwrap();
        let answer = front.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), 200);
    }
    drop((works.map(|task| task.abort()), waits));
    said("its worker does not run")
}

#[tokio::test(start_paused = true)]
async fn messages_for_which_no_worker_runs_are_one_warning() {
    assert_eq!(accept(false).await, 1);
}

#[tokio::test(start_paused = true)]
async fn with_a_worker_nothing_is_said() {
    assert_eq!(accept(true).await, 0);
}
