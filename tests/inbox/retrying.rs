//! What fails is tried again.

use std::time::Duration;

use tokio::time::Instant;
use tower_idempotency::store::{Behind, Store};

use crate::world::{Run, World};

fn seconds_between(runs: &[Run]) -> Vec<f64> {
    let gap = |pair: &[Run]| (pair[1].began - pair[0].began).as_secs_f64();
    runs.windows(2).map(gap).collect()
}

/// Row 46: a failure is tried again after a growing pause, and holds its conversation back.
///
/// Field cases B114, P60, P92.
#[tokio::test(start_paused = true)]
async fn a_failure_is_tried_again_and_holds_its_conversation() {
    let world = World::new();
    world.deliver("a", "fail2-1").await;
    world.deliver("a", "ok-2").await;
    world.deliver("b", "ok-3").await;
    world.log.ended(5).await;
    let of_a: Vec<String> = world
        .log
        .ids()
        .into_iter()
        .filter(|id| id != "ok-3")
        .collect();
    assert_eq!(of_a, ["fail2-1", "fail2-1", "fail2-1", "ok-2"]);
    let runs = world.log.of("fail2-1");
    let attempts: Vec<u32> = runs.iter().map(|run| run.attempt).collect();
    assert_eq!(attempts, [1, 2, 3]);
    let gaps = seconds_between(&runs);
    assert!(
        (0.5..=1.6).contains(&gaps[0]) && (1.0..=2.6).contains(&gaps[1]),
        "{gaps:?}"
    );
    assert_eq!(world.front.counts().failed, 2);
}

/// The option: others pass a message that has failed.
///
/// Field case B114.
#[tokio::test(start_paused = true)]
async fn others_may_pass_a_failure() {
    let world = World::with(|inbox| inbox.behind_a_failure(Behind::Pass));
    world.deliver("a", "fail2-1").await;
    world.deliver("a", "ok-2").await;
    world.log.ended(4).await;
    assert_eq!(world.log.ids(), ["fail2-1", "ok-2", "fail2-1", "fail2-1"]);
}

/// `Retry-After` is honoured, and so is what the handler says by an extension.
///
/// Field case B120.
#[tokio::test(start_paused = true)]
async fn the_handler_says_when() {
    let world = World::new();
    world.deliver("a", "after-1").await;
    world.deliver("b", "later-2").await;
    world.log.ended(4).await;
    let after = seconds_between(&world.log.of("after-1"))[0];
    assert!((120.0..121.0).contains(&after), "{after}");
    let later = seconds_between(&world.log.of("later-2"))[0];
    assert!((7.0..8.0).contains(&later), "{later}");
}

/// A panic, an error and an answer that does not come are failures, and harm nobody else.
#[tokio::test(start_paused = true)]
async fn every_kind_of_failure_is_one() {
    let world = World::with(|inbox| inbox.attempts(2).attempt_limit(Duration::from_secs(10)));
    for (chat, id) in [
        ("a", "panic-1"),
        ("b", "error-2"),
        ("c", "hang-3"),
        ("d", "fail-4"),
    ] {
        world.deliver(chat, id).await;
    }
    world.deliver("e", "ok-5").await;
    world.drained().await;
    let letters = world.letters().dead(None, 10).await.unwrap();
    let mut faults: Vec<String> = letters
        .into_iter()
        .filter_map(|letter| letter.fault)
        .collect();
    faults.sort();
    assert_eq!(
        faults,
        [
            "answered 500 Internal Server Error: out of order",
            "did not end within 10s",
            "failed: no connection",
            "panicked: at the disco",
        ]
    );
    assert_eq!(world.log.of("ok-5").len(), 1);
    for id in ["panic-1", "error-2", "hang-3", "fail-4"] {
        assert_eq!(world.log.of(id).len(), 2, "{id}");
    }
}

/// What the handler says by a disposition counts more than the status.
///
/// Field case B127.
#[tokio::test(start_paused = true)]
async fn a_disposition_is_obeyed() {
    let world = World::new();
    world.deliver("a", "given-1").await;
    world.deliver("b", "kept-2").await;
    world.drained().await;
    assert_eq!(world.log.of("given-1").len(), 2);
    assert_eq!(world.log.of("kept-2").len(), 1);
}

/// A message whose conversation is forgotten while it waits is not handled; its repeat is one.
#[tokio::test(start_paused = true)]
async fn a_forgotten_message_is_not_handled() {
    let world = World::new();
    world.deliver("a", "fail2-1").await;
    world.log.ended(1).await;
    let began = Instant::now();
    let conversation = tower_idempotency::Conversation::new("hook", "", "a");
    while world.store.forget(&conversation).await.unwrap() == 0 {
        assert!(began.elapsed() < Duration::from_secs(9));
    }
    world.drained().await;
    world.deliver("a", "fail2-1").await;
    assert_eq!(world.log.ids(), ["fail2-1"]);
}
