//! The shards that one call works on, taken in order.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::store::memory::shard::Shard;

/// How many shards there are: as many as a byte names.
pub(super) const SHARDS: usize = 256;

/// All shards.
pub(super) struct Shards(Box<[Mutex<Shard>; SHARDS]>);

/// The shards of one call's keys, taken in ascending order, so that no two calls wait for each
/// other. The common call has one key and allocates nothing.
pub(super) enum Locked<'a> {
    One(MutexGuard<'a, Shard>),
    Many(Vec<(u8, MutexGuard<'a, Shard>)>),
}

impl Shards {
    pub(super) fn new() -> Self {
        Self(Box::new(std::array::from_fn(|_| Mutex::default())))
    }

    /// The shard of one key.
    pub(super) fn of(&self, hash: u64) -> MutexGuard<'_, Shard> {
        self.at(index(hash))
    }

    #[expect(clippy::indexing_slicing, reason = "a byte indexes 256 shards")]
    pub(super) fn at(&self, index: u8) -> MutexGuard<'_, Shard> {
        self.0[usize::from(index)]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The shards of several keys, by the keys' hashes.
    pub(super) fn of_all(&self, hashes: &[u64]) -> Locked<'_> {
        if let [hash] = hashes {
            return Locked::One(self.of(*hash));
        }
        let mut indices: Vec<u8> = hashes.iter().map(|hash| index(*hash)).collect();
        indices.sort_unstable();
        indices.dedup();
        Locked::Many(indices.into_iter().map(|i| (i, self.at(i))).collect())
    }
}

impl Locked<'_> {
    /// The shard of a key whose hash was among those asked for.
    #[expect(
        clippy::expect_used,
        reason = "asked for: the shard of every key of the call"
    )]
    pub(super) fn of(&mut self, hash: u64) -> &mut Shard {
        match self {
            Self::One(shard) => shard,
            Self::Many(shards) => shards
                .iter_mut()
                .find(|(at, _)| *at == index(hash))
                .map(|(_, shard)| &mut **shard)
                .expect("a shard that was locked"),
        }
    }
}

/// The table inside a shard takes the lowest and the highest bits; the shard takes others.
fn index(hash: u64) -> u8 {
    let [_, _, _, _, byte, ..] = hash.to_le_bytes();
    byte
}
