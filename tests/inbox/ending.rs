//! How workers end, and what others do then.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::Full;
use tokio::time::{Instant, sleep};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt, service_fn};
use tower_idempotency::inbox::Inbox;
use tower_idempotency::store::{MemoryStore, Queue};

use crate::world::{Handled, Handler, World, batch, hook};

/// Row 50: a worker that is told to stop finishes what it is handling, begins nothing more, and
/// leaves the rest to others at once.
#[tokio::test(start_paused = true)]
async fn a_worker_stops_in_order() {
    let mut first = World::new();
    first.deliver("a", "slow-1").await;
    first.deliver("a", "slow-2").await;
    first.log.until(|runs| !runs.is_empty()).await;
    first.stop().await;
    assert_eq!(first.log.ids(), ["slow-1"]);
    assert!(first.log.runs()[0].ended.is_some());
    let began = Instant::now();
    let second = World::on(first.store.clone(), first.log.clone(), |inbox| inbox);
    second.log.ended(2).await;
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(second.log.ids(), ["slow-1", "slow-2"]);
    assert_eq!(second.log.of("slow-2")[0].attempt, 1);
}

/// What does not end within the limit is cut, has had an attempt, and is due at once.
#[tokio::test(start_paused = true)]
async fn a_stopping_worker_cuts_what_takes_too_long() {
    let mut first = World::with(|inbox| inbox.stop_limit(Duration::from_secs(3)));
    first.deliver("a", "hang-1").await;
    first.log.until(|runs| !runs.is_empty()).await;
    let began = Instant::now();
    first.stop().await;
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "{:?}",
        began.elapsed()
    );
    let second = World::on(first.store.clone(), first.log.clone(), |inbox| inbox);
    let runs = second.log.until(|runs| runs.len() == 2).await;
    assert_eq!(runs[1].attempt, 2);
    assert!(began.elapsed() < Duration::from_secs(5));
}

/// A worker whose task is aborted gives its turns back, too.
#[tokio::test(start_paused = true)]
async fn an_aborted_worker_gives_its_turns_back() {
    let first = World::new();
    first.deliver("a", "hang-1").await;
    first.log.until(|runs| !runs.is_empty()).await;
    let began = Instant::now();
    first.abort();
    let second = World::on(first.store.clone(), first.log.clone(), |inbox| inbox);
    second.log.until(|runs| runs.len() == 2).await;
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
}

/// After the end of its worker, however it came, a front gives turns to nobody: what it accepts is
/// due at once.
#[tokio::test(start_paused = true)]
async fn a_front_without_its_worker_gives_no_turns() {
    for is_aborted in [false, true] {
        let mut world = World::new();
        sleep(Duration::from_millis(10)).await;
        if is_aborted {
            world.abort();
            sleep(Duration::from_millis(10)).await;
        } else {
            world.stop().await;
        }
        world.deliver("a", "ok-1").await;
        let turns = world
            .store
            .take(1, 1, Duration::from_secs(1))
            .await
            .unwrap();
        assert_eq!(turns[0].hold.token.number(), 1, "a turn was given before");
    }
}

/// A turn is renewed while its handler runs, for many leases.
///
/// Field case B112.
#[tokio::test(start_paused = true)]
async fn a_turn_is_renewed_while_its_handler_runs() {
    let short = |inbox: Inbox<_, _>| {
        inbox
            .lease(Duration::from_millis(300))
            .look_every(Duration::from_millis(10))
    };
    let first = World::with(short);
    first.deliver("a", "slow-1").await;
    let second = World::on(first.store.clone(), first.log.clone(), short);
    second.log.ended(1).await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!(second.log.ids(), ["slow-1"]);
    assert_eq!(first.front.counts().lost, 0);
}

/// A handler that blocks its thread for several leases loses its turn to nobody, as long as the
/// runtime has another thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_turn_survives_a_handler_that_blocks_its_thread() {
    let store = MemoryStore::new();
    let runs = Arc::new(AtomicUsize::new(0));
    let mut fronts = Vec::new();
    for _ in 0..2 {
        let inbox = Inbox::new(store.clone(), hook())
            .may_lose_waiting()
            .lease(Duration::from_millis(200))
            .look_every(Duration::from_millis(20));
        let (front, worker) = inbox.wrap(blocking(&runs)).unwrap();
        fronts.push((front, tokio::spawn(worker.run())));
    }
    let request = Request::post("/hook").body(Full::from(batch(&[("a", "1")]).to_string()));
    let front = fronts[0].0.clone();
    assert!(
        front
            .oneshot(request.unwrap())
            .await
            .unwrap()
            .status()
            .is_success()
    );
    // Whichever worker was the first to be there has it.
    let counts = || fronts.iter().map(|(front, _)| front.counts());
    while counts().all(|counts| counts.handled == 0) {
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    assert!(counts().all(|counts| counts.lost == 0));
}

/// Counts its runs, and blocks its thread for 0.9 s in each.
fn blocking(runs: &Arc<AtomicUsize>) -> Handler {
    let runs = Arc::clone(runs);
    BoxCloneSyncService::new(service_fn(move |_: Handled| {
        runs.fetch_add(1, Ordering::Relaxed);
        block(Duration::from_millis(900));
        ready(Ok::<_, BoxError>(Response::new(Full::default())))
    }))
}

fn block(time: Duration) {
    let until = std::time::Instant::now() + time;
    while std::time::Instant::now() < until {
        std::hint::spin_loop();
    }
}
