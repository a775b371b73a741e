//! What the layer did, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};

use tracing::Span;

use crate::watch::emit::count;
use crate::watch::field;
use crate::watch::metric::{DETACHED, REQUESTS, ROLLED_BACK, UNCONFIRMED};

/// One count for each thing that the layer does.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    mode: Mode,
    pub(crate) without_key: Counter,
    pub(crate) runs: Counter,
    pub(crate) replayed: Counter,
    pub(crate) acked: Counter,
    pub(crate) waited: Counter,
    pub(crate) busy: Counter,
    pub(crate) unknown: Counter,
    pub(crate) refused: Counter,
    pub(crate) mismatched: Counter,
    pub(crate) not_kept: Counter,
    pub(crate) recorded: Counter,
    pub(crate) released: Counter,
    pub(crate) parked: Counter,
    pub(crate) superseded: Counter,
    pub(crate) unconfirmed: Counter,
    pub(crate) rolled_back: Counter,
    pub(crate) unprotected: Counter,
    pub(crate) unavailable: Counter,
    pub(crate) store_failures: Counter,
    pub(crate) renewals_lost: Counter,
    pub(crate) detached: Counter,
    pub(crate) overloaded: Counter,
    pub(crate) nested: Counter,
    pub(crate) unread: Counter,
}

/// On whose behalf is counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Mode {
    /// Of a layer.
    #[default]
    Line,
    /// Of an inbox.
    Inbox,
    /// Of a layer that only looks.
    Observe,
}

/// What a request came to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Told {
    WithoutKey,
    Run,
    Replayed,
    Acked,
    Busy,
    Unknown,
    Refused,
    Mismatched,
    NotKept,
    Unprotected,
    Unavailable,
    Overloaded,
    /// Claimed by a layer outside of this one.
    Nested,
    /// Not to be judged by a layer that only looks: the handler did not read the request.
    Unread,
    /// Stored by an inbox.
    Stored,
    /// Acknowledged by an inbox that knew all its messages.
    Repeated,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: usize) {
        let n = u64::try_from(n).unwrap_or(u64::MAX);
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a layer did since it was built: a snapshot, in which counts taken at slightly different
/// moments stand side by side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Requests that carried no key and passed unprotected.
    pub without_key: u64,
    /// Calls of the inner service under a lease.
    pub runs: u64,
    /// Requests answered from a record.
    pub replayed: u64,
    /// Repeats answered with the channel's ack, since no one record fits them.
    pub acked: u64,
    /// Repeats that waited for a run.
    pub waited: u64,
    /// Repeats told that the first run still goes on.
    pub busy: u64,
    /// Requests told that the outcome of one of their messages is unknown.
    pub unknown: u64,
    /// Requests refused before a claim: malformed, unverified, too large, cut short.
    pub refused: u64,
    /// Requests refused because another request has their key.
    pub mismatched: u64,
    /// Repeats told that the response was not kept.
    pub not_kept: u64,
    /// Messages recorded as done.
    pub recorded: u64,
    /// Messages given back after a failure, for the next repeat to run.
    pub released: u64,
    /// Messages parked: their runs ended without saying whether their work was done. Those whose
    /// leases lapsed are counted by nobody.
    pub parked: u64,
    /// Runs whose end changed nothing, since another run had taken over.
    pub superseded: u64,
    /// Runs whose end the store did not confirm in time.
    pub unconfirmed: u64,
    /// Runs whose transaction was to be committed and was not, or is not known to be.
    pub rolled_back: u64,
    /// Requests run without protection because the store failed and the layer was told to.
    pub unprotected: u64,
    /// Requests told to come again because the store failed.
    pub unavailable: u64,
    /// Store calls that failed.
    pub store_failures: u64,
    /// Leases that another run took over while their own run went on.
    pub renewals_lost: u64,
    /// Runs that went on after their caller had left.
    pub detached: u64,
    /// Requests refused because too many runs go on without a caller.
    pub overloaded: u64,
    /// Requests let pass because a layer outside of this one has claimed their messages.
    pub nested: u64,
    /// Requests of which a layer that [only looks](crate::IdempotencyLayer::observe_only) could not
    /// tell what they were, since the handler did not read them to their end.
    pub unread: u64,
}

impl Counters {
    pub(crate) fn of(mode: Mode) -> Self {
        Self {
            mode,
            ..Self::default()
        }
    }

    /// Counts what a request came to, and says it in its span.
    pub(crate) fn tell(&self, channel: &str, told: Told) {
        if let Some(counter) = self.counter(told) {
            counter.one();
        }
        let (mode, outcome) = (self.mode.name(), told.name());
        count(REQUESTS, [channel, mode, outcome], 1);
        Span::current().record(field::OUTCOME, outcome);
        tracing::debug!({ field::CHANNEL } = channel, mode, outcome, "outcome");
    }

    /// A run goes on although its caller has left.
    pub(crate) fn detach(&self) {
        self.detached.one();
        count(DETACHED, [], 1);
    }

    /// The store did not confirm the end of a run in time.
    pub(crate) fn leave_unconfirmed(&self) {
        self.unconfirmed.one();
        count(UNCONFIRMED, [], 1);
        tracing::warn!("the end of a run is not confirmed; it is tried again");
    }

    /// A transaction is not in force, or not known to be.
    pub(crate) fn roll_back(&self) {
        self.rolled_back.one();
        count(ROLLED_BACK, [], 1);
    }

    /// What an inbox counts by message has no counter here.
    fn counter(&self, told: Told) -> Option<&Counter> {
        Some(match told {
            Told::WithoutKey => &self.without_key,
            Told::Run => &self.runs,
            Told::Replayed => &self.replayed,
            Told::Acked => &self.acked,
            Told::Busy => &self.busy,
            Told::Unknown => &self.unknown,
            Told::Refused => &self.refused,
            Told::Mismatched => &self.mismatched,
            Told::NotKept => &self.not_kept,
            Told::Unprotected => &self.unprotected,
            Told::Unavailable => &self.unavailable,
            Told::Overloaded => &self.overloaded,
            Told::Nested => &self.nested,
            Told::Unread => &self.unread,
            Told::Stored | Told::Repeated => return None,
        })
    }

    pub(crate) fn snapshot(&self) -> Counts {
        Counts {
            without_key: self.without_key.value(),
            runs: self.runs.value(),
            replayed: self.replayed.value(),
            acked: self.acked.value(),
            waited: self.waited.value(),
            busy: self.busy.value(),
            unknown: self.unknown.value(),
            refused: self.refused.value(),
            mismatched: self.mismatched.value(),
            not_kept: self.not_kept.value(),
            recorded: self.recorded.value(),
            released: self.released.value(),
            parked: self.parked.value(),
            superseded: self.superseded.value(),
            unconfirmed: self.unconfirmed.value(),
            rolled_back: self.rolled_back.value(),
            unprotected: self.unprotected.value(),
            unavailable: self.unavailable.value(),
            store_failures: self.store_failures.value(),
            renewals_lost: self.renewals_lost.value(),
            detached: self.detached.value(),
            overloaded: self.overloaded.value(),
            nested: self.nested.value(),
            unread: self.unread.value(),
        }
    }
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Inbox => "inbox",
            Self::Observe => "observe",
        }
    }
}

impl Told {
    fn name(self) -> &'static str {
        match self {
            Self::WithoutKey => "without_key",
            Self::Run => "run",
            Self::Replayed => "replayed",
            Self::Acked => "acked",
            Self::Busy => "busy",
            Self::Unknown => "unknown",
            Self::Refused => "refused",
            Self::Mismatched => "mismatched",
            Self::NotKept => "not_kept",
            Self::Unprotected => "unprotected",
            Self::Unavailable => "unavailable",
            Self::Overloaded => "overloaded",
            Self::Nested => "nested",
            Self::Unread => "unread",
            Self::Stored => "stored",
            Self::Repeated => "repeated",
        }
    }
}
