//! The hand that asks a store, in the shortest words.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use http::{HeaderMap, StatusCode};
use tokio::time::sleep;

use crate::fingerprint::Fingerprint;
use crate::key::Key;
use crate::record::{Keep, Record, Whole};
use crate::store::contract::{Claim, Nonce, Sight, Store, Verdict, Wanted};
use crate::store::lease::{Lease, Settled, Settlement, Standing};

/// A lease or retention that does not end while a test runs.
pub(super) const LONG: Duration = Duration::from_mins(10);

/// A lease or retention whose end a test waits for.
pub(super) const SHORT: Duration = Duration::from_millis(50);

/// How long a test waits for what must come, before it fails.
const PATIENCE: Duration = Duration::from_secs(30);

const PAUSE: Duration = Duration::from_millis(10);

pub(super) fn key(id: &str) -> Key {
    Key::new("contract", "", &[id])
}

/// A record with this body, of one frame.
pub(super) fn record(body: &str) -> Arc<Record> {
    let whole = Whole {
        frames: vec![body.to_owned().into()],
        trailers: None,
        sized: true,
    };
    Arc::new(Record::new(StatusCode::OK, HeaderMap::new(), whole))
}

/// A fingerprint that differs from those with other numbers.
pub(super) fn print(number: u8) -> Fingerprint {
    Fingerprint::from_bytes(&[number; Fingerprint::SIZE]).unwrap()
}

/// Claims one message for a new attempt.
pub(super) async fn ask<S: Store>(store: &S, wanted: Wanted, lease: Duration) -> Verdict {
    ask_as(store, Nonce::random(), wanted, lease).await
}

/// Claims one message for the attempt called `nonce`.
pub(super) async fn ask_as<S: Store>(
    store: &S,
    nonce: Nonce,
    wanted: Wanted,
    lease: Duration,
) -> Verdict {
    let claim = Claim::new(nonce, lease, vec![wanted]);
    only(store.claim(&claim).await.unwrap())
}

/// The lease of a verdict that must be one.
pub(super) fn granted(verdict: Verdict) -> Lease {
    match verdict {
        Verdict::Run(lease) => lease,
        other => panic!("not granted: {other:?}"),
    }
}

/// The record of a verdict that must be a replay.
pub(super) fn replayed(verdict: Verdict) -> Arc<Record> {
    match verdict {
        Verdict::Replay(record) => record,
        other => panic!("not replayed: {other:?}"),
    }
}

/// What is left of the lease, by a verdict that must say that the key is running.
pub(super) fn busy(verdict: Verdict) -> Duration {
    match verdict {
        Verdict::Running { remaining } => remaining,
        other => panic!("not running: {other:?}"),
    }
}

/// Claims a message that must be free.
pub(super) async fn begin<S: Store>(store: &S, wanted: Wanted, lease: Duration) -> Lease {
    granted(ask(store, wanted, lease).await)
}

/// Runs a message that must be free, to its end.
pub(super) async fn finish<S: Store>(store: &S, wanted: Wanted, keep: Keep) -> Arc<Record> {
    let lease = begin(store, wanted, LONG).await;
    let record = record(lease.key().id());
    assert_eq!(
        settle(store, lease.record(Arc::clone(&record), keep)).await,
        Settled::Applied
    );
    record
}

pub(super) async fn settle<S: Store>(store: &S, settlement: Settlement) -> Settled {
    only(store.settle(&[settlement]).await.unwrap())
}

pub(super) async fn renew<S: Store>(store: &S, lease: &Lease, time: Duration) -> Standing {
    only(store.renew(&[lease.hold()], time).await.unwrap())
}

pub(super) async fn look<S: Store>(store: &S, key: &Key) -> Sight {
    only(store.look(std::slice::from_ref(key)).await.unwrap())
}

/// The record of a key that must be done.
pub(super) async fn done<S: Store>(store: &S, key: &Key) -> Arc<Record> {
    match look(store, key).await {
        Sight::Done(record) => record,
        other => panic!("not done: {other:?}"),
    }
}

/// What is left of the lease of a key that must be running.
pub(super) async fn remaining<S: Store>(store: &S, key: &Key) -> Duration {
    match look(store, key).await {
        Sight::Running { remaining } => remaining,
        other => panic!("not running: {other:?}"),
    }
}

pub(super) async fn is_absent<S: Store>(store: &S, key: &Key) -> bool {
    matches!(look(store, key).await, Sight::Absent)
}

/// Waits until the key's lease has lapsed.
pub(super) async fn lapse<S: Store>(store: &S, key: &Key) {
    until("the lease lapses", async || {
        remaining(store, key).await.is_zero().then_some(())
    })
    .await;
}

/// Claims the message again and again until it may be run.
pub(super) async fn take_over<S: Store>(store: &S, wanted: &Wanted, lease: Duration) -> Lease {
    until("the key may be run", async || {
        match ask(store, wanted.clone(), lease).await {
            Verdict::Run(lease) => Some(lease),
            Verdict::Running { .. } => None,
            other => panic!("neither granted nor running: {other:?}"),
        }
    })
    .await
}

/// Sweeps until the key's row is gone.
pub(super) async fn swept<S: Store>(store: &S, key: &Key) {
    until("the row goes", async || {
        store.sweep(100).await.unwrap();
        is_absent(store, key).await.then_some(())
    })
    .await;
    // Its time may have come between the sweep and the look.
    store.sweep(100).await.unwrap();
}

/// Asks until there is an answer.
pub(super) async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(began.elapsed() < PATIENCE, "waited in vain until {what}");
        sleep(PAUSE).await;
    }
}

/// Polls a future `polls` times and drops it; its output, if it ended by then.
pub(super) async fn give_up<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// The one answer to a question about one key.
pub(super) fn only<T>(answers: Vec<T>) -> T {
    let count = answers.len();
    let mut answers = answers.into_iter();
    match (answers.next(), answers.next()) {
        (Some(answer), None) => answer,
        _ => panic!("{count} answers to one question"),
    }
}
