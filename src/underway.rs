//! The messages that run in this process, so that their repeats wait without asking the store.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::quality::RandomState;
use tokio_util::sync::CancellationToken;

use crate::key::Key;

const SHARDS: usize = 16;

type Shard = HashMap<Key, Option<CancellationToken>, RandomState>;

/// The runs of this process. Nothing is decided by it: after a wait the store is asked again.
#[derive(Debug)]
pub(crate) struct Underway {
    shards: Vec<Mutex<Shard>>,
    hasher: RandomState,
    /// How many requests wait, for runs of this process and of others.
    waiting: AtomicUsize,
}

/// A request that waits until this is dropped.
#[derive(Debug)]
pub(crate) struct Waiting<'a>(&'a AtomicUsize);

/// Messages that run until this is dropped.
#[derive(Debug)]
pub(crate) struct Mine {
    underway: Arc<Underway>,
    keys: Vec<Key>,
}

impl Underway {
    pub(crate) fn new() -> Self {
        let hasher = RandomState::default();
        let shard = || Mutex::new(HashMap::with_hasher(hasher.clone()));
        Self {
            shards: std::iter::repeat_with(shard).take(SHARDS).collect(),
            hasher,
            waiting: AtomicUsize::new(0),
        }
    }

    /// A place to wait in, if fewer than `most` requests wait.
    pub(crate) fn wait(&self, most: usize) -> Option<Waiting<'_>> {
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let place = Waiting(&self.waiting);
        (before < most).then_some(place)
    }

    /// Notes that a run of `keys` begins.
    pub(crate) fn begin(self: &Arc<Self>, keys: Vec<Key>) -> Mine {
        for key in &keys {
            if let Some(mut shard) = self.shard(key) {
                shard.entry(key.clone()).or_insert(None);
            }
        }
        Mine {
            underway: Arc::clone(self),
            keys,
        }
    }

    /// What is cancelled when the run of `key` ends; `None` if it does not run here.
    pub(crate) fn end_of(&self, key: &Key) -> Option<CancellationToken> {
        let mut shard = self.shard(key)?;
        Some(shard.get_mut(key)?.get_or_insert_default().clone())
    }

    fn shard(&self, key: &Key) -> Option<MutexGuard<'_, Shard>> {
        let place = usize::try_from(self.hasher.hash_one(key) >> 60).unwrap_or(0);
        let shard = self.shards.get(place % SHARDS)?;
        Some(shard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        for key in &self.keys {
            let ended = self
                .underway
                .shard(key)
                .and_then(|mut shard| shard.remove(key));
            if let Some(Some(waiting)) = ended {
                waiting.cancel();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Field case B23.
    #[test]
    fn the_end_of_a_run_wakes_who_waits_for_it() {
        let underway = Arc::new(Underway::new());
        let key = Key::new("c", "s", &["1"]);
        assert!(underway.end_of(&key).is_none());
        let mine = underway.begin(vec![key.clone()]);
        let end = underway.end_of(&key).unwrap();
        assert!(!end.is_cancelled());
        drop(mine);
        assert!(end.is_cancelled());
        assert!(underway.end_of(&key).is_none());
    }

    #[test]
    fn so_many_wait_and_no_more_until_one_leaves() {
        let underway = Underway::new();
        let first = underway.wait(2).unwrap();
        let _second = underway.wait(2).unwrap();
        assert!(underway.wait(2).is_none());
        drop(first);
        assert!(underway.wait(2).is_some());
    }
}
