//! The store as its users see it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::error::Error;
use crate::key::{Conversation, Key};
use crate::store::contract::{Claim, Sight, Store, Verdict};
use crate::store::lease::{Hold, Settled, Settlement, Standing, Token};
use crate::store::memory::inbox::Inbox;
use crate::store::memory::table::Table;
use crate::store::queue::arrival::{Accepted, Arrival};
use crate::store::queue::backlog::{Backlog, DeadLetter, Death};
use crate::store::queue::contract::Queue;
use crate::store::queue::turn::{Onward, Report, Turn, TurnHold, Waiting};

/// The store in this process's memory: for tests, and for one process whose restart may forget.
///
/// What it promises, it promises while the process lives: a restart forgets every record, and a
/// repeat that comes after it is run again. Other processes do not see it.
///
/// # Bound
/// It keeps at most so many keys and so many bytes of records; see [`new`](Self::new) and
/// [`bounded`](Self::bounded). Where a claim would go over either, rows whose retention has ended
/// go first. If there are none, the claim of a *new* key fails with a
/// [retryable](Error::is_retryable) error and is counted by [`refused`](Self::refused); repeats
/// are answered as ever. A record that is still owed to repeats is never given up for a new key,
/// and neither is a running one.
///
/// # Cost
/// A claim and its settlement take about 0.4 µs together, whatever the number of keys. A key takes
/// about 250 bytes beside its text and its record. Rows leave in steps of a few with each claim;
/// there is no timer.
///
/// # Inbox
/// Waiting messages go with the process, although their senders were told that they were received.
/// An [inbox](crate::store::Queue) therefore refuses this store unless it is told to
/// accept the loss.
///
/// # Time
/// The clock is tokio's, so that tests with paused time work.
#[derive(Clone)]
pub struct MemoryStore {
    table: Arc<Table>,
    inbox: Arc<Inbox>,
}

/// A million keys, and a gibibyte of records.
const MAX_KEYS: usize = 1_000_000;
const MAX_BYTES: usize = 1 << 30;

impl MemoryStore {
    /// An empty store for up to a million keys and a gibibyte of records.
    pub fn new() -> Self {
        Self::bounded(MAX_KEYS, MAX_BYTES)
    }

    /// An empty store for up to `max_keys` keys, and about `max_bytes` bytes of records
    /// ([`Record::size`](crate::Record::size)). What ends while the bound is reached is recorded
    /// all the same, so the bytes may exceed it by the records of the runs then going on.
    pub fn bounded(max_keys: usize, max_bytes: usize) -> Self {
        Self {
            table: Arc::new(Table::bounded(max_keys, max_bytes)),
            inbox: Arc::default(),
        }
    }

    /// How many keys are kept: running ones, done ones, and ended ones that were not cleared yet.
    pub fn keys(&self) -> usize {
        self.table.keys()
    }

    /// How many bytes of records are kept, about.
    pub fn bytes(&self) -> usize {
        self.table.bytes()
    }

    /// How many claims were refused so far because the store was full.
    pub fn refused(&self) -> u64 {
        self.table.refused()
    }
}

impl Store for MemoryStore {
    async fn claim(&self, claim: &Claim) -> Result<Vec<Verdict>, Error> {
        self.table.claim(claim)
    }

    async fn renew(&self, holds: &[Hold], lease: Duration) -> Result<Vec<Standing>, Error> {
        Ok(self.table.renew(holds, lease))
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Settled>, Error> {
        Ok(self.table.settle(settlements))
    }

    async fn look(&self, keys: &[Key]) -> Result<Vec<Sight>, Error> {
        Ok(self.table.look(keys))
    }

    async fn forget(&self, conversation: &Conversation) -> Result<u64, Error> {
        let messages = self.inbox.rows().forget(conversation, self.table.now());
        Ok(self.table.forget(conversation) + messages)
    }

    async fn close(&self, conversation: &Conversation) -> Result<(), Error> {
        self.table.close(conversation);
        self.inbox.rows().close(conversation, self.table.now());
        Ok(())
    }

    async fn sweep(&self, limit: usize) -> Result<u64, Error> {
        let swept = self.table.sweep(limit);
        let left = limit.saturating_sub(usize::try_from(swept).unwrap_or(usize::MAX));
        Ok(swept + self.inbox.rows().sweep(left, self.table.now()))
    }
}

impl Queue for MemoryStore {
    fn is_durable(&self) -> bool {
        false
    }

    async fn accept(
        &self,
        arrivals: &[Arrival],
        lease: Option<Duration>,
    ) -> Result<Vec<Accepted>, Error> {
        let now = self.table.now();
        let mut rows = self.inbox.rows();
        let next_token = || self.table.next_token();
        let next_token: &dyn Fn() -> Token = &next_token;
        let lend = lease.map(|lease| (lease, next_token));
        let new = rows.count_new(arrivals);
        if !self.table.has_room(new, rows.size()) {
            rows.sweep(FULL_STEPS, now);
            if !self.table.has_room(new, rows.size()) {
                return Err(Error::unavailable("the memory store is full"));
            }
        }
        let accept = |arrival| rows.accept(arrival, now, lend);
        Ok(arrivals.iter().map(accept).collect())
    }

    async fn take(
        &self,
        lines: usize,
        messages: usize,
        lease: Duration,
    ) -> Result<Vec<Turn>, Error> {
        let when = (self.table.now(), lease);
        let next_token = || self.table.next_token();
        Ok(self.inbox.rows().take((lines, messages), when, next_token))
    }

    async fn renew_turns(
        &self,
        turns: &[TurnHold],
        lease: Duration,
    ) -> Result<Vec<Standing>, Error> {
        let now = self.table.now();
        let mut rows = self.inbox.rows();
        let renew = |hold: &TurnHold| rows.renew(*hold, now, lease);
        Ok(turns.iter().map(renew).collect())
    }

    async fn report(&self, reports: &[Report]) -> Result<Vec<Onward>, Error> {
        let now = self.table.now();
        let mut rows = self.inbox.rows();
        Ok(reports
            .iter()
            .map(|report| rows.report(report, now))
            .collect())
    }

    async fn kept(&self, key: &Key) -> Result<Option<Bytes>, Error> {
        Ok(self.inbox.rows().kept(key))
    }

    async fn backlog(&self) -> Result<Backlog, Error> {
        Ok(self.inbox.rows().backlog())
    }

    async fn waiting(&self, limit: usize) -> Result<Vec<Waiting>, Error> {
        Ok(self.inbox.rows().waiting(limit))
    }

    async fn dead(&self, after: Option<Death>, limit: usize) -> Result<Vec<DeadLetter>, Error> {
        Ok(self.inbox.rows().dead(after, limit))
    }

    async fn redrive(&self, deaths: &[Death]) -> Result<u64, Error> {
        let now = self.table.now();
        let mut rows = self.inbox.rows();
        Ok(deaths.iter().map(|death| rows.redrive(*death, now)).sum())
    }

    async fn bury(&self, deaths: &[Death]) -> Result<u64, Error> {
        let mut rows = self.inbox.rows();
        Ok(deaths.iter().map(|death| rows.bury(*death)).sum())
    }
}

/// How many keys are cleared at once when the inbox is full.
const FULL_STEPS: usize = 64;

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("keys", &self.keys())
            .field("bytes", &self.bytes())
            .field("refused", &self.refused())
            .finish_non_exhaustive()
    }
}
