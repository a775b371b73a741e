//! Dead messages.

use std::time::Duration;

use tokio::time::sleep;
use tower_idempotency::Key;
use tower_idempotency::inbox::Inbox;
use tower_idempotency::store::Death;

use crate::world::{World, batch};

/// Row 47: attempts spent, the message is dead, with its last fault; the next one goes on.
///
/// Field cases P60, P103.
#[tokio::test(start_paused = true)]
async fn a_message_dies_after_its_last_attempt() {
    let world = World::with(|inbox| inbox.attempts(3));
    world.deliver("a", "fail-1").await;
    world.deliver("a", "ok-2").await;
    world.drained().await;
    assert_eq!(world.log.ids(), ["fail-1", "fail-1", "fail-1", "ok-2"]);
    let letter = world.letters().dead(None, 10).await.unwrap().remove(0);
    assert_eq!(letter.attempts, 3);
    let fault = letter.fault.unwrap();
    assert_eq!(fault, "answered 500 Internal Server Error: out of order");
    let request = letter.request.unwrap();
    assert_eq!(request.delivery.key().id(), "fail-1");
    assert_eq!(request.head.uri, "/hook?x=1");
    assert!(letter.died_at.unwrap() >= letter.received_at);
}

/// The handler says "never again": the message is dead at once.
///
/// Field case B120.
#[tokio::test(start_paused = true)]
async fn the_handler_gives_a_message_up() {
    let world = World::new();
    world.deliver("a", "never-1").await;
    world.drained().await;
    assert_eq!(world.log.ids(), ["never-1"]);
    let letter = world.letters().dead(None, 10).await.unwrap().remove(0);
    let fault = letter.fault.unwrap();
    assert_eq!(fault, "answered 422 Unprocessable Entity: no such shop");
}

/// A redrive runs once even if it is called twice; a redelivery meanwhile is a repeat.
#[tokio::test(start_paused = true)]
async fn a_redrive_runs_once() {
    let world = World::with(|inbox| inbox.attempts(1));
    world.deliver("a", "fail-1").await;
    world.drained().await;
    let letters = world.letters();
    let death = letters.dead(None, 10).await.unwrap()[0].death.unwrap();
    assert!(letters.redrive(death).await.unwrap());
    assert!(!letters.redrive(death).await.unwrap());
    world.deliver("a", "fail-1").await;
    world.drained().await;
    assert_eq!(world.log.ids(), ["fail-1", "fail-1"]);
    let second = letters.dead(None, 10).await.unwrap()[0].death.unwrap();
    assert_ne!(second, death);
    assert!(!letters.redrive(death).await.unwrap());
    assert_eq!(letters.redrive_all().await.unwrap(), 1);
    world.drained().await;
    assert_eq!(world.log.ids().len(), 3);
}

/// A dropped message is gone; its repeat is still one.
#[tokio::test(start_paused = true)]
async fn a_buried_message_is_gone() {
    let world = World::with(|inbox| inbox.attempts(1));
    world.deliver("a", "fail-1").await;
    world.drained().await;
    let letters = world.letters();
    let death = letters.dead(None, 10).await.unwrap()[0].death.unwrap();
    assert!(letters.bury(death).await.unwrap());
    assert!(!letters.bury(death).await.unwrap());
    assert!(!letters.bury(Death::new(77)).await.unwrap());
    world.deliver("a", "fail-1").await;
    sleep(Duration::from_secs(10)).await;
    assert_eq!(world.log.ids(), ["fail-1"]);
    assert_eq!(world.front.counts().repeats_of_done, 1);
}

/// What waits is listed with its request.
#[tokio::test(start_paused = true)]
async fn what_waits_is_listed() {
    let world = World::new();
    world.deliver("a", "slow-1").await;
    world.deliver("a", "slow-2").await;
    let waiting = world.letters().waiting(10).await.unwrap();
    let ids: Vec<String> = waiting
        .iter()
        .map(|letter| {
            letter
                .request
                .as_ref()
                .unwrap()
                .delivery
                .key()
                .id()
                .to_owned()
        })
        .collect();
    assert_eq!(ids, ["slow-1", "slow-2"]);
    let backlog = world.letters().backlog().await.unwrap();
    assert_eq!((backlog.waiting, backlog.lines, backlog.dead), (2, 1, 0));
}

/// The requests of done messages can be kept.
#[tokio::test(start_paused = true)]
async fn requests_can_be_kept() {
    let key = Key::new("hook", "", &["ok-1"]);
    let (keeping, other) = (World::with(Inbox::keep_requests), World::new());
    for world in [&keeping, &other] {
        world.deliver("a", "ok-1").await;
        world.drained().await;
    }
    let kept = keeping.letters().kept(&key).await.unwrap().unwrap();
    assert_eq!(kept.head.uri, "/hook?x=1");
    assert_eq!(kept.body, batch(&[("a", "ok-1")]).to_string());
    assert!(other.letters().kept(&key).await.unwrap().is_none());
}
