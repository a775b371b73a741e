//! Time, callers that leave, and more than a server can hold.

use std::time::Duration;

use futures_util::future::join_all;
use http_body_util::BodyExt;
use tokio::time::{Instant, sleep, timeout};
use tower::limit::ConcurrencyLimit;
use tower::load_shed::LoadShed;
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_idempotency::channel::{IdempotencyKey, Slack, WhatsApp};
use tower_idempotency::inbox::{Inbox, Letters};
use tower_idempotency::store::MemoryStore;
use tower_idempotency::{IdempotencyLayer, Keep};

use crate::app::{Answered, App, JSON, Seen, keyed, post, text, web};
use crate::double_runs::whatsapp;
use crate::stores::Double;

fn slow(time: Duration) -> App {
    App::new(move |asked| async move {
        sleep(time).await;
        text(&format!("run {}", asked.run))
    })
}

/// One id again and again, every minute for a day and an hour: a repeat does not extend the record,
/// so it runs once more when a day is over; each repeat costs one call of the store.
///
/// Field cases B65, P58.
#[tokio::test(start_paused = true)]
async fn an_id_that_comes_every_minute_runs_once_a_day_and_costs_one_call_each() {
    let store = Double::default();
    let layer = IdempotencyLayer::new(store.clone(), WhatsApp::unverified());
    let layer = layer.keep(Keep::For(Duration::from_hours(24)));
    let app = App::quick();
    let minutes = 25 * 60;
    for _ in 0..minutes {
        assert_eq!(
            app.send(&layer, post("/", JSON, whatsapp("A1")))
                .await
                .status,
            200
        );
        sleep(Duration::from_mins(1)).await;
    }
    assert_eq!(app.runs(), 2);
    // A claim each, and a record for each run.
    assert_eq!(store.does.calls(), minutes + 2);
}

/// A repeat that comes while the run goes on whose caller was told that its time was up is told to
/// come again; one that comes later gets the record.
///
/// Field case B84.
#[tokio::test(start_paused = true)]
async fn a_repeat_does_not_race_a_run_whose_callers_time_was_up() {
    let layer = web().wait(Duration::ZERO);
    let app = slow(Duration::from_secs(1));
    let first = timeout(
        Duration::from_millis(200),
        app.send(&layer, keyed("k", "yes")),
    );
    assert!(first.await.is_err());
    sleep(Duration::from_millis(200)).await;
    assert!(app.send(&layer, keyed("k", "yes")).await.is_retryable());
    sleep(Duration::from_secs(1)).await;
    assert!(app.send(&layer, keyed("k", "yes")).await.is_replayed());
    assert_eq!(app.runs(), 1);
}

/// Repeats that wait are bounded: one more is told at once to come again, and other messages run as
/// if nobody waited.
///
/// Field case B88.
#[tokio::test(start_paused = true)]
async fn repeats_that_wait_are_bounded_and_hold_nobody_up() {
    let store = Double::default();
    let layer = IdempotencyLayer::new(store.clone(), IdempotencyKey::unscoped());
    let layer = layer.max_waiting(20).wait(Duration::from_secs(5));
    let app = App::new(|asked| async move {
        let is_slow = asked.text() == "slow";
        sleep(if is_slow {
            Duration::from_secs(30)
        } else {
            Duration::from_millis(1)
        })
        .await;
        text("done")
    });
    let first = tokio::spawn(app.begin(&layer, keyed("k", "slow")));
    sleep(Duration::from_millis(1)).await;
    let began = Instant::now();
    let repeats = (0..500).map(|_| async {
        let seen = app.send(&layer, keyed("k", "slow")).await;
        assert!(seen.is_retryable());
        began.elapsed()
    });
    let others = (0..50).map(|n| async move { (n, began.elapsed()) });
    let others = join_all(others.map(|other| async {
        let (n, _) = other.await;
        sleep(Duration::from_millis(n * 20)).await;
        let sent = Instant::now();
        let seen = app.send(&layer, keyed(&format!("{n}"), "quick")).await;
        (
            seen.status.as_u16(),
            sent.elapsed() < Duration::from_millis(20),
        )
    }));
    let (told, others) = tokio::join!(join_all(repeats), others);
    let waited = told.iter().filter(|after| after.as_secs() >= 5).count();
    let at_once = told.iter().filter(|after| after.as_millis() < 10).count();
    assert_eq!((waited, at_once), (20, 480));
    assert!(others.iter().all(|other| *other == (200, true)));
    assert_eq!((layer.counts().waited, layer.counts().busy), (20, 500));
    // Waiting for a run of this process asks the store for nothing.
    assert!(store.does.calls() < 2 * 50 + 500 + 30);
    first.await.unwrap().unwrap();
}

/// Runs whose callers left are bounded: beyond, a new message is refused before it is claimed, and
/// no run is cut.
///
/// Field case P25.
#[tokio::test(start_paused = true)]
async fn runs_without_a_caller_are_bounded_and_none_is_cut() {
    let layer = web().max_detached(3);
    let app = slow(Duration::from_mins(1));
    for n in 0..3 {
        let left = app.send(&layer, keyed(&format!("{n}"), "yes"));
        let left = timeout(Duration::from_secs(1), left).await;
        assert!(left.is_err());
    }
    let refused = app.send(&layer, keyed("3", "yes")).await;
    assert!(refused.is_retryable(), "{refused:?}");
    assert!(refused.text().contains("overloaded"));
    assert_eq!((app.runs(), layer.counts().overloaded), (3, 1));
    assert_eq!(layer.drain(Duration::from_mins(2)).await, 0);
    assert_eq!(layer.counts().recorded, 3);
    assert_eq!(app.send(&layer, keyed("3", "yes")).await.status, 200);
}

/// A crowd on three keys, a third of which leaves while it waits: the rest is answered, the keys run
/// once, and nothing is left of those who left.
///
/// Field case B23.
#[tokio::test(start_paused = true)]
async fn a_crowd_on_few_keys_is_answered_though_a_third_leaves() {
    let layer = web();
    let app = slow(Duration::from_secs(1));
    for round in 1..=20 {
        let crowd = (0..1000).map(|n| {
            let sent = app.send(&layer, keyed(&format!("{round} {}", n % 3), "yes"));
            let patience = if n % 9 < 3 { 0 } else { 30 };
            timeout(Duration::from_secs(patience), sent)
        });
        for seen in join_all(crowd).await.into_iter().flatten() {
            assert_eq!(seen.status, 200);
        }
        assert_eq!(layer.drain(Duration::from_secs(5)).await, 0);
        assert_eq!(app.runs(), round * 3);
    }
}

/// Services that hold a place from when they were polled ready get it back, whatever the layer
/// answers by itself, and are never called without.
///
/// Field case B90.
#[tokio::test(start_paused = true)]
async fn a_place_in_the_handler_is_given_back_by_every_kind_of_answer() {
    let layer = web().wait(Duration::ZERO);
    let app = slow(Duration::from_millis(1));
    let one = ConcurrencyLimit::new(app.handler.clone(), 1);
    let mut service = layer.layer(one.clone());
    for n in 0..100 {
        let request = match n % 4 {
            0 => keyed(&format!("{n}"), "first"),
            1 => keyed("0", "first"),
            2 => keyed("0", "other"),
            _ => keyed("\"broken", "first"),
        };
        let answer = service.ready().await.unwrap().call(request);
        let expected = [200, 200, 422, 400][n % 4];
        assert_eq!(answer.await.unwrap().status(), expected);
    }
    drop(service);
    let mut free = LoadShed::new(one);
    assert!(free.ready().await.is_ok());
    assert_eq!(app.runs(), 25);
}

/// A limiter behind the layer: what it throttles is not kept, and repeats of what is done do not
/// count.
///
/// Field case B91.
#[tokio::test(start_paused = true)]
async fn what_is_throttled_is_not_kept_and_repeats_do_not_count() {
    let layer = web();
    let app = App::new(|asked| async move {
        if asked.run == 1 {
            crate::app::status(429)
        } else {
            text("done")
        }
    });
    assert_eq!(app.send(&layer, keyed("k", "yes")).await.status, 429);
    for _ in 0..100 {
        assert_eq!(app.send(&layer, keyed("k", "yes")).await.text(), "done");
    }
    assert_eq!(app.runs(), 2);
}

const EVENT: &str = r#"{"type":"event_callback","event_id":"Ev01","event":{"channel":"C"}}"#;

/// Four copies within twelve milliseconds, of a message that takes five seconds: in line one run,
/// and nobody is told that it is done before it is.
///
/// Field case B92.
#[tokio::test(start_paused = true)]
async fn four_copies_at_a_cold_start_are_one_run_in_line() {
    let layer = IdempotencyLayer::new(MemoryStore::new(), Slack::unverified());
    let app = slow(Duration::from_secs(5));
    let began = Instant::now();
    let copies = (0..4).map(|n| {
        let (app, layer) = (&app, &layer);
        async move {
            sleep(Duration::from_millis(n * 4)).await;
            let seen = app.send(layer, post("/", JSON, EVENT)).await;
            (seen, began.elapsed())
        }
    });
    for (seen, after) in join_all(copies).await {
        assert_eq!(
            seen.status == 200,
            after.as_secs() >= 5,
            "{seen:?} {after:?}"
        );
        assert!(seen.status == 200 || seen.is_retryable());
    }
    assert_eq!(app.runs(), 1);
}

/// The same ack first: all are answered at once, and one is handled.
///
/// Field cases B92, B103.
#[tokio::test(start_paused = true)]
async fn four_copies_at_a_cold_start_are_one_message_of_an_inbox() {
    let store = MemoryStore::new();
    let app = slow(Duration::from_secs(5));
    let inbox = Inbox::new(store.clone(), Slack::unverified());
    let inbox = inbox.may_lose_waiting().reply_elsewhere();
    let (front, worker) = inbox.wrap(app.handler.clone()).unwrap();
    let worker = tokio::spawn(worker.run());
    let began = Instant::now();
    let copies = (0..4).map(|n| {
        let front = front.clone();
        async move {
            sleep(Duration::from_millis(n * 4)).await;
            front
                .oneshot(post("/", JSON, EVENT))
                .await
                .unwrap()
                .status()
        }
    });
    let statuses = join_all(copies).await;
    assert!(statuses.iter().all(http::StatusCode::is_success));
    assert!(began.elapsed() < Duration::from_secs(3));
    while Letters::new(store.clone()).backlog().await.unwrap().lines > 0 {
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!((app.runs(), front.counts().accepted), (1, 1));

    // A handshake is answered by the handler itself, each time anew.
    let echo = App::new(|asked| async move { text(asked.text()) });
    let inbox = Inbox::new(MemoryStore::new(), Slack::unverified());
    let inbox = inbox.may_lose_waiting().reply_elsewhere();
    let (front, _worker) = inbox.wrap(echo.handler.clone()).unwrap();
    for challenge in ["x", "y"] {
        let body = format!(r#"{{"type":"url_verification","challenge":"{challenge}"}}"#);
        let answer: Answered = front
            .clone()
            .oneshot(post("/", JSON, body.clone()))
            .await
            .map(|answer| answer.map(BodyExt::boxed_unsync));
        assert_eq!(Seen::of(answer.unwrap()).await.text(), body);
    }
    assert_eq!(front.counts().accepted, 0);
    worker.abort();
}

/// Pressure on the store by a handler that never ends is none on others: a layer whose inner
/// service is a plain function keeps answering repeats of what is done.
#[tokio::test(start_paused = true)]
async fn a_handler_that_hangs_holds_up_its_own_message_only() {
    let layer = web().wait(Duration::from_secs(1));
    let handler = service_fn(|request: crate::app::Handled| async move {
        if request.headers()["idempotency-key"] == "hangs" {
            std::future::pending::<()>().await;
        }
        text("done")
    });
    let send = |key: &'static str| layer.layer(handler).oneshot(keyed(key, "yes"));
    let hangs = tokio::spawn(send("hangs"));
    sleep(Duration::from_millis(1)).await;
    for replayed in [false, true] {
        let answer = send("quick").await.unwrap();
        let mark = answer.headers().contains_key("idempotency-replayed");
        assert_eq!(mark, replayed);
    }
    assert_eq!(send("hangs").await.unwrap().status(), 409);
    sleep(Duration::from_mins(10)).await;
    assert_eq!(send("hangs").await.unwrap().status(), 409);
    hangs.abort();
}
