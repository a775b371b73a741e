//! Ack first: what becomes of messages that fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::StatusCode;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tower::ServiceExt;
use tower_idempotency::channel::JsonPath;
use tower_idempotency::inbox::{Front, Inbox, Letter, Letters};
use tower_idempotency::store::MemoryStore;
use tower_idempotency::verify::Unverified;

use crate::app::{App, Handler, JSON, post, status, text};

type Hook = Unverified<JsonPath>;

fn hook() -> Hook {
    let hook = JsonPath::new("hook", "$.id").unwrap();
    hook.conversation("$.chat").unwrap().unverified()
}

/// An inbox that runs, in this process.
struct World {
    front: Front<Handler, MemoryStore, Hook, http_body_util::Full<bytes::Bytes>>,
    letters: Letters<MemoryStore>,
    worker: JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.worker.abort();
    }
}

impl World {
    fn new(
        app: &App,
        options: impl FnOnce(Inbox<MemoryStore, Hook>) -> Inbox<MemoryStore, Hook>,
    ) -> Self {
        let store = MemoryStore::new();
        let inbox = options(Inbox::new(store.clone(), hook()).may_lose_waiting());
        let (front, worker) = inbox.wrap(app.handler.clone()).unwrap();
        Self {
            front,
            letters: Letters::new(store),
            worker: tokio::spawn(worker.run()),
        }
    }

    async fn deliver(&self, body: String) -> StatusCode {
        let answer = self.front.clone().oneshot(post("/", JSON, body)).await;
        answer.unwrap().status()
    }

    async fn message(&self, chat: &str, id: &str) {
        let body = format!(r#"{{"chat":"{chat}","id":"{id}"}}"#);
        assert_eq!(self.deliver(body).await, StatusCode::OK);
    }

    async fn drained(&self) {
        while self.letters.backlog().await.unwrap().lines > 0 {
            sleep(Duration::from_millis(100)).await;
        }
    }

    async fn dead(&self) -> Vec<Letter> {
        self.letters.dead(None, 100).await.unwrap()
    }
}

/// A batch in which one message is a repeat is acknowledged, and the others are handled.
///
/// Field case P89.
#[tokio::test(start_paused = true)]
async fn a_repeat_in_a_batch_does_not_keep_the_others_out() {
    let app = App::quick();
    let hook = JsonPath::new("hook", "$[*]").unwrap().unverified();
    let inbox = Inbox::new(MemoryStore::new(), hook).may_lose_waiting();
    let letters = inbox.letters();
    let (front, worker) = inbox.wrap(app.handler.clone()).unwrap();
    let worker = tokio::spawn(worker.run());
    for (body, runs) in [("[1]", 1), ("[1,2,3]", 3), ("[3,2,4,1]", 4)] {
        let answer = front.clone().oneshot(post("/", JSON, body)).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        while letters.backlog().await.unwrap().lines > 0 {
            sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(app.runs(), runs, "{body}");
    }
    assert_eq!(front.counts().accepted, 4);
    worker.abort();
}

/// What cannot succeed goes to the dead at once where its status was named, with what it said, and
/// the next one comes; everything else is tried again, and what says when is asked then.
///
/// Field case B120.
#[tokio::test(start_paused = true)]
async fn statuses_that_were_named_are_given_up_on_and_others_are_tried_again() {
    let never = [400, 404, 410, 422];
    let again = [401, 409, 429, 500, 503];
    let app = App::new(|asked| async move {
        let id = asked.text().split('"').nth(7).unwrap().to_owned();
        let (word, code) = id.split_once('-').unwrap();
        match (
            word,
            asked
                .head
                .extensions
                .get()
                .map(tower_idempotency::inbox::Received::attempt),
        ) {
            ("fails", Some(1)) | ("never", _) => status(code.parse().unwrap()),
            _ => text("done"),
        }
    });
    let named = never.map(|code| StatusCode::from_u16(code).unwrap());
    let world = World::new(&app, |inbox| inbox.gives_up_on(named));
    for code in never {
        world.message("a", &format!("never-{code}")).await;
    }
    for code in again {
        world
            .message(&format!("{code}"), &format!("fails-{code}"))
            .await;
    }
    world.message("a", "last-1").await;
    world.drained().await;
    let dead = world.dead().await;
    let mut faults: Vec<_> = dead.iter().filter_map(|it| it.fault.as_deref()).collect();
    faults.sort_unstable();
    assert_eq!(
        faults,
        [
            "answered 400 Bad Request",
            "answered 404 Not Found",
            "answered 410 Gone",
            "answered 422 Unprocessable Entity",
        ]
    );
    assert!(dead.iter().all(|letter| letter.attempts == 1));
    assert_eq!(app.runs(), 4 + 2 * 5 + 1);
}

/// An outage of what the handler needs that is longer than all attempts loses nothing: what died
/// meanwhile is among the dead with its request, and is handled in order when it is redriven.
///
/// Field case B117.
#[tokio::test(start_paused = true)]
async fn what_an_outage_has_killed_is_there_and_is_redriven() {
    let is_up = Arc::new(AtomicBool::new(false));
    let up = Arc::clone(&is_up);
    let app = App::new(move |_| {
        let code = if up.load(Ordering::SeqCst) { 200 } else { 503 };
        async move { status(code) }
    });
    let world = World::new(&app, |inbox| inbox);
    for n in 0..20 {
        world
            .message(&format!("chat {}", n % 4), &format!("{n}"))
            .await;
    }
    sleep(Duration::from_hours(2)).await;
    world.drained().await;
    assert_eq!(
        (world.dead().await.len(), world.front.counts().handled),
        (20, 0)
    );
    is_up.store(true, Ordering::SeqCst);
    assert_eq!(world.letters.redrive_all().await.unwrap(), 20);
    world.drained().await;
    assert_eq!(
        (world.dead().await.len(), world.front.counts().handled),
        (0, 20)
    );
}

/// A failed message is tried for as long as the docs say: ten attempts, within four to nine minutes.
///
/// Field case B117.
#[tokio::test(start_paused = true)]
async fn ten_attempts_take_four_to_nine_minutes() {
    let app = App::new(|_| async { status(500) });
    let world = World::new(&app, |inbox| inbox);
    let began = tokio::time::Instant::now();
    world.message("a", "1").await;
    world.drained().await;
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    assert!((4.0..9.0).contains(&minutes), "{minutes} minutes");
    assert_eq!(app.runs(), 10);
}

/// A body of exactly the limit is stored and comes back whole; a larger one is refused, and not
/// acknowledged first.
///
/// Field case B122.
#[tokio::test(start_paused = true)]
async fn a_body_at_the_limit_is_stored_and_one_above_is_refused() {
    let app = App::new(|asked| async move {
        assert_eq!(asked.body.len(), 100);
        text("done")
    });
    let world = World::new(&app, |inbox| inbox.max_request(100));
    let body = |length| format!("{:length$}", r#"{"chat":"a","id":"1"}"#);
    assert_eq!(
        world.deliver(body(101)).await,
        StatusCode::PAYLOAD_TOO_LARGE
    );
    assert_eq!(world.front.counts().accepted, 0);
    assert_eq!(world.deliver(body(100)).await, StatusCode::OK);
    world.drained().await;
    assert_eq!((app.runs(), world.front.counts().handled), (1, 1));
}
