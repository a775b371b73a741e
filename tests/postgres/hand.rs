//! The hand that asks a store, in the shortest words.

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderMap, StatusCode};
use tokio::time::sleep;
use tower_idempotency::store::{
    Claim, Lease, Nonce, Settled, Settlement, Sight, Store, Verdict, Wanted,
};
use tower_idempotency::{Error, Keep, Key, Record, Whole};

/// A lease or retention that does not end while a test runs.
pub(crate) const LONG: Duration = Duration::from_mins(10);

/// A lease or retention whose end a test waits for.
pub(crate) const SHORT: Duration = Duration::from_millis(50);

pub(crate) fn key(id: impl Display) -> Key {
    Key::new("postgres", "", &[format!("{id}")])
}

/// The claim of these keys for a new attempt.
pub(crate) fn claim_of(keys: &[Key]) -> Claim {
    let wanted = keys.iter().cloned().map(Wanted::new).collect();
    Claim::new(Nonce::random(), LONG, wanted)
}

pub(crate) async fn ask(store: &impl Store, key: &Key) -> Result<Verdict, Error> {
    let claim = claim_of(std::slice::from_ref(key));
    Ok(store.claim(&claim).await?.pop().unwrap())
}

/// Claims a key that must be free.
pub(crate) async fn begin(store: &impl Store, key: &Key) -> Lease {
    granted(ask(store, key).await.unwrap())
}

pub(crate) fn granted(verdict: Verdict) -> Lease {
    match verdict {
        Verdict::Run(lease) => lease,
        other => panic!("not granted: {other:?}"),
    }
}

/// A record with this body.
pub(crate) fn record(body: &str) -> Arc<Record> {
    let whole = Whole {
        frames: vec![body.to_owned().into()],
        trailers: None,
        sized: true,
    };
    Arc::new(Record::new(StatusCode::OK, HeaderMap::new(), whole))
}

/// The end of a run whose record is the key's id.
pub(crate) fn done(lease: Lease) -> Settlement {
    let record = record(lease.key().id());
    lease.record(record, Keep::For(LONG))
}

pub(crate) async fn settle(store: &impl Store, end: &Settlement) -> Result<Settled, Error> {
    let settled = store.settle(std::slice::from_ref(end)).await?;
    Ok(settled[0])
}

pub(crate) async fn look(store: &impl Store, key: &Key) -> Sight {
    let mut sights = store.look(std::slice::from_ref(key)).await.unwrap();
    sights.pop().unwrap()
}

pub(crate) fn is_done(sight: &Sight) -> bool {
    matches!(sight, Sight::Done(_))
}

pub(crate) fn is_running(sight: &Sight) -> bool {
    matches!(sight, Sight::Running { .. })
}

/// Asks until there is an answer, for half a minute.
pub(crate) async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "in vain: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}
