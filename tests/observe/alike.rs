//! Whatever is found, the answer is the bare service's.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use tower_idempotency::Counts;

use crate::bare::{Observing, Sent, observing};
use crate::store::{Mood, Moody};

const FOREVER: Duration = Duration::from_mins(10);

/// Sends requests one after the other: each is answered as without the layer. Gives what the layer
/// would have done.
async fn alike(store: &Moody, sent: &[Sent]) -> Counts {
    let layer = observing(store);
    for sent in sent {
        assert_eq!(sent.through(&layer).await, sent.alone().await, "{sent:?}");
        settled(&layer).await;
    }
    layer.counts()
}

/// What happens beside the requests has happened.
async fn settled(layer: &Observing) {
    assert_eq!(layer.drain(FOREVER).await, 0);
}

fn one(key: &'static str, body: &'static [&'static str]) -> [Sent; 1] {
    [Sent::new(key, body)]
}

#[tokio::test(start_paused = true)]
async fn a_first_one() {
    for body in [
        &["hello"][..],
        &["hello", " ", "you"],
        &[],
        &["stream"],
        &["empty"],
        &["large"],
    ] {
        let counts = alike(&Moody::default(), &one("k", body)).await;
        assert_eq!(
            (counts.runs, counts.recorded, counts.released),
            (1, 1, 0),
            "{body:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeat() {
    for body in [
        &["hello"][..],
        &["hello", " ", "you"],
        &["stream"],
        &["empty"],
    ] {
        let twice = [Sent::new("k", body), Sent::new("k", body)];
        let counts = alike(&Moody::default(), &twice).await;
        assert_eq!((counts.runs, counts.replayed), (1, 1), "{body:?}");
    }
    let twice = [Sent::new("k", &["large"]), Sent::new("k", &["large"])];
    assert_eq!(alike(&Moody::default(), &twice).await.not_kept, 1);
}

#[tokio::test(start_paused = true)]
async fn a_repeat_of_what_still_runs() {
    let layer = observing(&Moody::default());
    let first = Sent::new("k", &["wait"]);
    let repeat = async {
        sleep(Duration::from_secs(1)).await;
        first.through(&layer).await
    };
    let (answer, repeated) = tokio::join!(first.through(&layer), repeat);
    // It did not wait for the first one: it takes as long as without the layer.
    assert_eq!(repeated, first.alone().await);
    assert_eq!(answer, first.alone().await);
    settled(&layer).await;
    let counts = layer.counts();
    assert_eq!((counts.runs, counts.waited, counts.replayed), (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn another_request_under_the_same_key() {
    let other = [Sent::new("k", &["hello"]), Sent::new("k", &["hello again"])];
    let counts = alike(&Moody::default(), &other).await;
    assert_eq!((counts.runs, counts.mismatched), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_bad_key_a_body_too_large_and_a_body_cut_short() {
    let bad = [
        Sent::new("k,l", &["hello"]),
        Sent::new("\"k", &["hello"]),
        Sent::new(
            "a",
            &["0123456789012345678901234567890123456789012345678901234567890123456789"],
        ),
        Sent::new("b", &["hello", "CUT"]),
    ];
    let counts = alike(&Moody::default(), &bad).await;
    assert_eq!((counts.refused, counts.runs), (4, 0));
}

#[tokio::test(start_paused = true)]
async fn no_key() {
    let counts = alike(&Moody::default(), &one("", &["hello"])).await;
    assert_eq!((counts.without_key, counts.runs), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_down_or_does_not_answer() {
    for mood in [Mood::Fails, Mood::Hangs] {
        let store = Moody::default();
        store.is(mood);
        let counts = alike(&store, &one("k", &["hello"])).await;
        assert_eq!((counts.unavailable, counts.runs), (1, 0), "{mood:?}");
    }
    let store = Moody::default();
    store.is(Mood::SettlesNothing);
    let layer = observing(&store);
    let sent = Sent::new("k", &["hello"]);
    assert_eq!(sent.through(&layer).await, sent.alone().await);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(layer.counts().unconfirmed, 1);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_fails() {
    for body in [&["fail"][..], &["error"], &["break"], &["not handled"]] {
        let twice = [Sent::new("k", body), Sent::new("k", body)];
        let counts = alike(&Moody::default(), &twice).await;
        assert_eq!(
            (counts.runs, counts.recorded, counts.released),
            (2, 0, 2),
            "{body:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_does_not_read() {
    let counts = alike(&Moody::default(), &one("k", &["leaves the rest", "of it"])).await;
    assert_eq!((counts.unread, counts.runs), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_ends_its_handler() {
    let layer = observing(&Moody::default());
    let left = Sent::new("k", &["wait"]).through(&layer);
    assert!(timeout(Duration::from_secs(1), left).await.is_err());
    settled(&layer).await;
    let counts = layer.counts();
    assert_eq!((counts.runs, counts.released, counts.detached), (1, 1, 0));
}
