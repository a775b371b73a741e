//! Order and concurrency.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tower_idempotency::store::MemoryStore;

use crate::world::{Log, Run, World};

/// Row 45: over several workers, one message of a conversation at a time, in order.
#[tokio::test(start_paused = true)]
async fn a_conversation_is_handled_one_at_a_time_and_in_order() {
    let store = MemoryStore::new();
    let log = Log::default();
    let worlds: Vec<World> = (0..4)
        .map(|_| World::on(store.clone(), log.clone(), |inbox| inbox))
        .collect();
    for n in 0..40 {
        for chat in ["a", "b", "c"] {
            worlds[n % 4]
                .deliver(chat, &format!("slow-{chat}-{n:02}"))
                .await;
        }
    }
    log.ended(120).await;
    for chat in ["a", "b", "c"] {
        let mut runs = log.runs();
        runs.retain(|run| run.id.starts_with(&format!("slow-{chat}")));
        assert!(runs.is_sorted_by(follows), "{runs:#?}");
        assert_eq!(runs.len(), 40);
    }
}

/// `b` began after `a` had ended, and came after it.
fn follows(a: &Run, b: &Run) -> bool {
    a.id < b.id && a.ended.is_some_and(|ended| ended <= b.began)
}

/// Conversations do not wait for each other.
#[tokio::test(start_paused = true)]
async fn conversations_are_handled_side_by_side() {
    let world = World::new();
    let began = Instant::now();
    for n in 0..50 {
        world
            .deliver(&format!("chat {n}"), &format!("slow-{n}"))
            .await;
    }
    world.log.ended(50).await;
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
}

/// No more lines are handled at once than was asked for.
#[tokio::test(start_paused = true)]
async fn concurrency_is_bounded() {
    let world = World::with(|inbox| inbox.concurrency(3));
    for n in 0..12 {
        world
            .deliver(&format!("chat {n}"), &format!("slow-{n}"))
            .await;
    }
    let runs = world.log.ended(12).await;
    for run in &runs {
        let beside = runs.iter().filter(|other| {
            other.began <= run.began && other.ended.is_none_or(|ended| ended > run.began)
        });
        assert!(beside.count() <= 3);
    }
}

/// Waiting for a turn is no attempt: 30 messages of one conversation, each handled for half a
/// second by one of eight workers with at most five attempts, are 30 runs in order.
#[tokio::test(start_paused = true)]
async fn waiting_for_a_turn_is_no_attempt() {
    let store = MemoryStore::new();
    let log = Log::default();
    let worlds: Vec<World> = (0..8)
        .map(|_| World::on(store.clone(), log.clone(), |inbox| inbox.attempts(5)))
        .collect();
    for n in 0..30 {
        worlds[n % 8].deliver("a", &format!("slow-{n:02}")).await;
    }
    let runs = log.ended(30).await;
    assert!(runs.is_sorted_by(follows));
    assert!(runs.iter().all(|run| run.attempt == 1));
    assert_eq!(worlds[0].letters().backlog().await.unwrap().dead, 0);
}

/// A long line does not keep others from their turn, even where there is one place only.
#[tokio::test(start_paused = true)]
async fn a_long_line_does_not_keep_others_waiting() {
    let mut asleep = World::new();
    asleep.stop().await;
    for n in 0..100 {
        asleep.deliver("long", &format!("slow-{n:03}")).await;
    }
    sleep(Duration::from_millis(1)).await;
    asleep.deliver("short", "ok-short").await;
    let world = World::on(asleep.store.clone(), asleep.log.clone(), |inbox| {
        inbox.concurrency(1)
    });
    let runs = world
        .log
        .until(|runs| runs.iter().any(|run| run.id == "ok-short"))
        .await;
    assert!(runs.len() < 5, "{} messages came before", runs.len());
    world.log.ended(101).await;
    let long = world.log.ids().into_iter().filter(|id| id != "ok-short");
    assert!(long.is_sorted());
}

/// What came earlier is not overtaken for ever by what comes fresh.
#[tokio::test(start_paused = true)]
async fn fresh_lines_do_not_starve_those_that_wait() {
    let mut asleep = World::new();
    asleep.stop().await;
    for n in 0..20 {
        asleep
            .deliver(&format!("old {n}"), &format!("slow-old-{n}"))
            .await;
    }
    sleep(Duration::from_secs(5)).await;
    let world = World::on(asleep.store.clone(), asleep.log.clone(), |inbox| {
        inbox.concurrency(4)
    });
    let old = |run: &Run| run.id.starts_with("slow-old");
    for n in 0..200 {
        world
            .deliver(&format!("new {n}"), &format!("slow-new-{n}"))
            .await;
        sleep(Duration::from_millis(100)).await;
    }
    let ended = world.log.runs().into_iter().filter(old).count();
    assert_eq!(ended, 20, "of 20 old messages");
}
