//! What a layer that only looks leaves behind.

use std::time::Duration;

use tower_idempotency::IdempotencyLayer;
use tower_idempotency::channel::{IdempotencyKey, Scope};

use crate::bare::{Sent, observing};
use crate::store::Moody;

#[tokio::test(start_paused = true)]
async fn a_layer_that_acts_replays_what_was_recorded_before() {
    let store = Moody::default();
    let layer = observing(&store);
    let sent = Sent::new("k", &["stream"]);
    sent.through(&layer).await;
    assert_eq!(layer.drain(Duration::from_mins(1)).await, 0);
    let channel = IdempotencyKey::scoped_by(Scope::header("x-user"));
    let acting = IdempotencyLayer::new(store, channel);
    sent.through(&acting).await;
    let counts = acting.counts();
    assert_eq!((counts.replayed, counts.runs), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_kept_while_the_handler_runs() {
    let layer = observing(&Moody::default()).lease(Duration::from_millis(600));
    let sent = Sent::new("k", &["wait"]);
    let repeat = async {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        sent.through(&layer).await
    };
    tokio::join!(sent.through(&layer), repeat);
    assert_eq!(layer.drain(Duration::from_mins(1)).await, 0);
    let counts = layer.counts();
    assert_eq!((counts.runs, counts.replayed), (1, 1));
}
