//! How long conversations live.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::quality::RandomState;
use hashbrown::HashTable;

use crate::key::Conversation;

use crate::store::memory::moment::Moment;

/// One conversation that has rows. All of them share it, so that a new message extends them all.
#[derive(Debug)]
pub(super) struct Life {
    hash: u64,
    conversation: Conversation,
    latest: AtomicU64,
}

impl Life {
    /// When the last new message came, or the conversation was closed.
    pub(super) fn latest(&self) -> Moment {
        Moment::from_number(self.latest.load(Ordering::Relaxed))
    }

    fn touch(&self, now: Moment) {
        self.latest.fetch_max(now.number(), Ordering::Relaxed);
    }
}

/// The conversations that have rows.
///
/// A shard's mutex is taken while a row's shard is held, never the other way round. Counts of
/// references change under it only, so that the last row of a conversation sees that it is.
pub(super) struct Lives {
    shards: Box<[Mutex<HashTable<Arc<Life>>>; SHARDS]>,
    hasher: RandomState,
}

const SHARDS: usize = 256;

impl Lives {
    pub(super) fn new() -> Self {
        Self {
            shards: Box::new([const { Mutex::new(HashTable::new()) }; SHARDS]),
            hasher: RandomState::default(),
        }
    }

    /// A new message came: the conversation lives on from now.
    pub(super) fn open(&self, conversation: &Conversation, now: Moment) -> Arc<Life> {
        let hash = self.hasher.hash_one(conversation);
        let mut shard = self.shard(hash);
        let entry = shard.entry(
            hash,
            |life| life.conversation == *conversation,
            |life| life.hash,
        );
        let life = entry.or_insert_with(|| {
            Arc::new(Life {
                hash,
                conversation: conversation.clone(),
                latest: AtomicU64::new(now.number()),
            })
        });
        life.get().touch(now);
        Arc::clone(life.get())
    }

    /// The conversation, if it has rows. To be given back by [`leave`](Self::leave).
    pub(super) fn find(&self, conversation: &Conversation) -> Option<Arc<Life>> {
        let hash = self.hasher.hash_one(conversation);
        let shard = self.shard(hash);
        let life = shard.find(hash, |life| life.conversation == *conversation)?;
        Some(Arc::clone(life))
    }

    /// Counts the conversation's idle time from now.
    pub(super) fn close(&self, conversation: &Conversation, now: Moment) {
        let hash = self.hasher.hash_one(conversation);
        let shard = self.shard(hash);
        if let Some(life) = shard.find(hash, |life| life.conversation == *conversation) {
            life.touch(now);
        }
    }

    /// A row of the conversation is gone; with its last row the conversation goes.
    pub(super) fn leave(&self, life: Arc<Life>) {
        let hash = life.hash;
        let mut shard = self.shard(hash);
        let Ok(entry) = shard.find_entry(hash, |kept| Arc::ptr_eq(kept, &life)) else {
            return;
        };
        drop(life);
        if Arc::strong_count(entry.get()) == 1 {
            entry.remove();
        }
    }

    #[expect(clippy::indexing_slicing, reason = "a byte indexes 256 shards")]
    fn shard(&self, hash: u64) -> MutexGuard<'_, HashTable<Arc<Life>>> {
        let [_, _, _, _, byte, ..] = hash.to_le_bytes();
        self.shards[usize::from(byte)]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_goes_with_its_last_row() {
        let lives = Lives::new();
        let conversation = Conversation::new("web", "", "7");
        let (first, second) = (
            lives.open(&conversation, Moment::default()),
            lives.open(&conversation, Moment::default()),
        );
        lives.leave(first);
        assert!(lives.shard(second.hash).len() == 1);
        let hash = second.hash;
        lives.leave(second);
        assert!(lives.shard(hash).is_empty());
    }
}
