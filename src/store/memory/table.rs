//! All rows, and the operations on them.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use foldhash::quality::RandomState;
use tokio::time::Instant;

use crate::error::Error;
use crate::key::{Conversation, Key};
use crate::record::{Keep, Record};
use crate::store::contract::{Claim, Sight, Verdict, Wanted};
use crate::store::lease::{End, Hold, Settled, Settlement, Standing, Token};

use crate::store::memory::life::Lives;
use crate::store::memory::locked::Shards;
use crate::store::memory::moment::Moment;
use crate::store::memory::row::Row;
use crate::store::memory::shard::{Shard, Step};

/// All rows.
pub(super) struct Table {
    shards: Shards,
    lives: Lives,
    hasher: RandomState,
    epoch: Instant,
    tokens: AtomicI64,
    held: Held,
    max_keys: usize,
    max_bytes: usize,
    refused: AtomicU64,
    sweep_from: AtomicU8,
}

/// What is kept at the moment.
#[derive(Default)]
struct Held {
    keys: AtomicUsize,
    bytes: AtomicUsize,
}

/// How many rows one claim looks at to clear them: more than one, so that clearing keeps up.
const STEPS: usize = 4;

/// How many rows are cleared at once when a claim finds the store full.
const FULL_STEPS: usize = 64;

impl Table {
    pub(super) fn bounded(max_keys: usize, max_bytes: usize) -> Self {
        Self {
            shards: Shards::new(),
            lives: Lives::new(),
            hasher: RandomState::default(),
            epoch: Instant::now(),
            tokens: AtomicI64::new(0),
            held: Held::default(),
            max_keys,
            max_bytes,
            refused: AtomicU64::new(0),
            sweep_from: AtomicU8::new(0),
        }
    }

    pub(super) fn keys(&self) -> usize {
        self.held.keys.load(Ordering::Relaxed)
    }

    pub(super) fn bytes(&self) -> usize {
        self.held.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Whether the inbox, beside what it keeps, may keep so many keys more. It has the same bounds
    /// as the table, apart from it.
    pub(super) fn has_room(&self, keys: usize, (kept, bytes): (usize, usize)) -> bool {
        keys == 0 || kept.saturating_add(keys) <= self.max_keys && bytes < self.max_bytes
    }

    pub(super) fn claim(&self, claim: &Claim) -> Result<Vec<Verdict>, Error> {
        if let Some(verdicts) = self.try_claim(claim) {
            return Ok(verdicts);
        }
        if self.sweep(FULL_STEPS) > 0
            && let Some(verdicts) = self.try_claim(claim)
        {
            return Ok(verdicts);
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        Err(Error::unavailable("the memory store is full"))
    }

    /// `None` if there is no room for the new keys of the claim; nothing is granted then.
    fn try_claim(&self, claim: &Claim) -> Option<Vec<Verdict>> {
        if let [wanted] = claim.wanted.as_slice() {
            return self.grant(claim, &[self.hash(&wanted.key)]);
        }
        let hashes: Vec<u64> = claim.wanted.iter().map(|w| self.hash(&w.key)).collect();
        self.grant(claim, &hashes)
    }

    fn grant(&self, claim: &Claim, hashes: &[u64]) -> Option<Vec<Verdict>> {
        let now = self.now();
        let mut locked = self.shards.of_all(hashes);
        let mut vacant = 0;
        for (wanted, &hash) in claim.wanted.iter().zip(hashes) {
            let shard = locked.of(hash);
            self.clear(shard, now);
            vacant += self.vacate(shard, hash, &wanted.key, now);
        }
        if !self.reserve(vacant) {
            return None;
        }
        let mut answer = |(wanted, &hash): (&Wanted, &u64)| {
            let shard = locked.of(hash);
            if let Some(row) = shard.find(hash, &wanted.key) {
                return row.answer(wanted, claim, now, || self.next_token());
            }
            vacant = vacant.saturating_sub(1);
            self.begin(shard, hash, wanted, (claim, now))
        };
        let verdicts = claim.wanted.iter().zip(hashes).map(&mut answer).collect();
        self.held.keys.fetch_sub(vacant, Ordering::Relaxed);
        Some(verdicts)
    }

    /// Clears the key's row if its retention has ended; gives 1 if there is no row then.
    fn vacate(&self, shard: &mut Shard, hash: u64, key: &Key, now: Moment) -> usize {
        match shard.find(hash, key).map(|row| row.has_ended(now)) {
            Some(false) => 0,
            Some(true) => {
                self.gone(shard.remove(hash, key));
                1
            }
            None => 1,
        }
    }

    /// Takes room for `keys` new rows, if there is room.
    fn reserve(&self, keys: usize) -> bool {
        if keys == 0 {
            return true;
        }
        let full = self.held.bytes.load(Ordering::Relaxed) >= self.max_bytes;
        let before = self.held.keys.fetch_add(keys, Ordering::Relaxed);
        if full || before.saturating_add(keys) > self.max_keys {
            self.held.keys.fetch_sub(keys, Ordering::Relaxed);
            return false;
        }
        true
    }

    fn begin(
        &self,
        shard: &mut Shard,
        hash: u64,
        wanted: &Wanted,
        (claim, now): (&Claim, Moment),
    ) -> Verdict {
        let life = wanted
            .conversation
            .as_ref()
            .map(|c| self.lives.open(c, now));
        let lent = (claim.nonce, now.plus(claim.lease));
        let row = Row::begun(hash, wanted, self.next_token(), life, lent);
        let lease = row.lease();
        shard.insert(row);
        Verdict::Run(lease)
    }

    pub(super) fn renew(&self, holds: &[Hold], lease: Duration) -> Vec<Standing> {
        let until = self.now().plus(lease);
        let renew = |hold: &Hold| {
            let hash = self.hash(&hold.key);
            match self.shards.of(hash).find(hash, &hold.key) {
                Some(row) => row.renew(hold.token, until),
                None => Standing::Lost,
            }
        };
        holds.iter().map(renew).collect()
    }

    pub(super) fn settle(&self, settlements: &[Settlement]) -> Vec<Settled> {
        if let [one] = settlements {
            return self.settle_hashed(settlements, &[self.hash(&one.hold.key)]);
        }
        let hash = |settlement: &Settlement| self.hash(&settlement.hold.key);
        let hashes: Vec<u64> = settlements.iter().map(hash).collect();
        self.settle_hashed(settlements, &hashes)
    }

    fn settle_hashed(&self, settlements: &[Settlement], hashes: &[u64]) -> Vec<Settled> {
        let now = self.now();
        let mut locked = self.shards.of_all(hashes);
        let settle = |(settlement, &hash): (&Settlement, &u64)| {
            self.settle_one(locked.of(hash), hash, settlement, now)
        };
        settlements.iter().zip(hashes).map(settle).collect()
    }

    fn settle_one(&self, shard: &mut Shard, hash: u64, end: &Settlement, now: Moment) -> Settled {
        let Settlement { hold, end } = end;
        let Some(row) = shard
            .find(hash, &hold.key)
            .filter(|row| row.token == hold.token)
        else {
            return Settled::Superseded;
        };
        match (row.is_running(), end) {
            (true, End::Record { record, keep }) => row.record(record, *keep, now),
            (true, End::Release) if row.is_forgotten() => {
                row.record(&Arc::new(Record::tombstone()), Keep::CONVERSATION, now);
            }
            (true, End::Release) => {
                self.gone(shard.remove(hash, &hold.key));
                return Settled::Applied;
            }
            (false, End::Record { .. }) => return Settled::Applied,
            (false, End::Release) => return Settled::Superseded,
        }
        let (token, ends, size) = (row.token, row.ends(), row.size());
        self.held.bytes.fetch_add(size, Ordering::Relaxed);
        if let Some(at) = ends {
            shard.schedule(hash, token, at);
        }
        Settled::Applied
    }

    pub(super) fn look(&self, keys: &[Key]) -> Vec<Sight> {
        let now = self.now();
        let look = |key: &Key| {
            let hash = self.hash(key);
            match self.shards.of(hash).find(hash, key) {
                Some(row) if !row.has_ended(now) => row.sight(now),
                Some(_) | None => Sight::Absent,
            }
        };
        keys.iter().map(look).collect()
    }

    pub(super) fn close(&self, conversation: &Conversation) {
        self.lives.close(conversation, self.now());
    }

    /// Goes through all shards, one at a time: claims of other shards go on meanwhile.
    pub(super) fn forget(&self, conversation: &Conversation) -> u64 {
        let Some(life) = self.lives.find(conversation) else {
            return 0;
        };
        let mut rows = 0;
        for index in 0..=u8::MAX {
            let mut shard = self.shards.at(index);
            for row in shard.rows().filter(|row| row.is_of(&life)) {
                let before = row.size();
                row.forget();
                self.held.bytes.fetch_sub(before, Ordering::Relaxed);
                rows += 1;
            }
        }
        self.lives.leave(life);
        rows
    }

    /// Begins where the last call ended, so that many small calls reach every shard.
    pub(super) fn sweep(&self, limit: usize) -> u64 {
        let now = self.now();
        let from = self.sweep_from.load(Ordering::Relaxed);
        let mut swept = 0;
        for index in (0..=u8::MAX).map(|i| from.wrapping_add(i)) {
            let mut shard = self.shards.at(index);
            while swept < limit
                && let Some(gone) = self.step(&mut shard, now)
            {
                swept += gone;
            }
            if swept == limit {
                self.sweep_from.store(index, Ordering::Relaxed);
                break;
            }
        }
        u64::try_from(swept).unwrap_or(u64::MAX)
    }

    /// A few steps of clearing, with each claim.
    fn clear(&self, shard: &mut Shard, now: Moment) {
        for _ in 0..STEPS {
            if self.step(shard, now).is_none() {
                return;
            }
        }
    }

    /// Gives how many rows went; `None` if no row's time has come.
    fn step(&self, shard: &mut Shard, now: Moment) -> Option<usize> {
        match shard.step(now) {
            Step::Idle => None,
            Step::Stays => Some(0),
            Step::Gone(row) => {
                self.gone(Some(row));
                Some(1)
            }
        }
    }

    /// Counts a row out that was taken out of its table.
    fn gone(&self, row: Option<Box<Row>>) {
        let Some(row) = row else { return };
        self.held.keys.fetch_sub(1, Ordering::Relaxed);
        self.held.bytes.fetch_sub(row.size(), Ordering::Relaxed);
        if let Some(life) = row.life {
            self.lives.leave(life);
        }
    }

    pub(super) fn now(&self) -> Moment {
        Moment::since(self.epoch)
    }

    fn hash(&self, key: &Key) -> u64 {
        self.hasher.hash_one(key)
    }

    pub(super) fn next_token(&self) -> Token {
        Token::new(self.tokens.fetch_add(1, Ordering::Relaxed) + 1)
    }
}
