//! What a store owes: it answers a claim in one atomic step.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[cfg(not(any(test, feature = "testing")))]
use rand::random;

#[cfg(any(test, feature = "testing"))]
use crate::chance::random;
use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::key::{Conversation, Key};
use crate::record::Record;
use crate::store::lease::{Hold, Lease, Settled, Settlement, Standing, Token};
use crate::store::loan::Loan;

/// Answers a claim in one atomic step: run it, replay it, it is running, it is something else.
///
/// ```text
///            claim                    settle: record              sweep
///  (no row) ───────▶ running(token) ────────────────▶ done ───────────────▶ (no row)
///     ▲                │   ▲    │                       │
///     └────────────────┘   └────┘ claim after           └─ forget ─▶ done, without payload
///      settle: release      the lease lapsed: higher token
/// ```
///
/// An implementer owes, beside what each method says:
/// * **one conditional statement** per row: insert if absent, take over only if running *and*
///   lapsed, judged by the statement that writes; never read, then write;
/// * **tokens from one sequence** of the whole store, never given twice, also not after a row was
///   removed, a restart, or from another process;
/// * **the store's clock** judges leases and retention, at the moment of the write;
/// * **durability**: what was answered survives the store's crash (`MemoryStore` says that it
///   does not);
/// * **cancel safety**: a dropped future leaves the call either applied or not, never half, and
///   harms no other call;
/// * **batches**: rows are locked in the order of their keys, so that overlapping batches do not
///   deadlock, and the answers come in the order of the question.
///
/// A clone is another handle on the same store. Futures are `Send` and borrow the arguments.
///
/// What names a store is none, and neither is the `Result` of opening one:
///
/// ```compile_fail,E0277
/// # use tower_idempotency::{IdempotencyLayer, channel::WhatsApp};
/// IdempotencyLayer::new("postgres://localhost/chat", WhatsApp::unverified());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a store",
    label = "not a store",
    note = "stores are passed by value and cloned; they need no `Arc`",
    note = "opening one gives a `Result`: `SqliteStore::open(path)?`, `PostgresStore::connect(url).await?`, or \
            `store::connect(url).await?` for a choice at run time"
)]
pub trait Store: Clone + Send + Sync + 'static {
    /// Claims all keys of one request, each by itself: some may be run while others are busy.
    ///
    /// For each key: no row, or a done one whose retention has ended → a running row under a new
    /// token, attempt 1. Running and lapsed →
    /// the same row under a new, higher token, the attempt counted up. Running under the claim's
    /// own nonce → the lease that was given before: same token, same attempt, extended. Running →
    /// [`Verdict::Running`]. Done → [`Verdict::Replay`]. Where both the row and the claim have
    /// fingerprints and they differ, running or done → [`Verdict::Other`], except that a lapsed
    /// row is taken over whatever it was; a claim without a fingerprint leaves it the row's.
    ///
    /// A claim that says [`unknown_for`](Claim::unknown_for) takes over only what has been lapsed
    /// for that long. Lapsed for less, and not under the claim's own nonce → [`Verdict::Unknown`],
    /// or [`Verdict::Other`] where the fingerprints differ; the row keeps its token, and its owner
    /// may still renew, record and release it.
    ///
    /// A repeat changes nothing: neither retention nor the conversation's life.
    ///
    /// # Errors
    /// If the store cannot tell. The claim may have been applied all the same; asking again with
    /// the same nonce finds out.
    fn claim(&self, claim: &Claim) -> impl Future<Output = Result<Vec<Verdict>, Error>> + Send;

    /// Extends leases to `lease` from now. Also extends one that has lapsed and was not taken over.
    /// A `lease` of zero ends them now and leaves their rows.
    ///
    /// # Errors
    /// If the store cannot tell.
    fn renew(
        &self,
        holds: &[Hold],
        lease: Duration,
    ) -> impl Future<Output = Result<Vec<Standing>, Error>> + Send;

    /// Ends runs: records or releases, by key **and** token, all or none of the call's rows being
    /// written together. Only updates: a row that is gone is not made again, a done row is not
    /// written again, and a settlement that matches nothing changes nothing.
    ///
    /// A record: the row becomes done, with its retention counted from now. A record on a row
    /// that is done under the same token answers [`Settled::Applied`]: it was applied before. On a
    /// row whose conversation was forgotten meanwhile, a tombstone is written instead.
    /// A release: the row goes; if its conversation was forgotten, it becomes a tombstone.
    ///
    /// # Errors
    /// If the store cannot tell. The settlements may have been applied all the same; settling
    /// again finds out.
    fn settle(
        &self,
        settlements: &[Settlement],
    ) -> impl Future<Output = Result<Vec<Settled>, Error>> + Send;

    /// Looks at keys and changes nothing.
    ///
    /// # Errors
    /// If the store cannot tell.
    fn look(&self, keys: &[Key]) -> impl Future<Output = Result<Vec<Sight>, Error>> + Send;

    /// Forgets a conversation: the payloads of its done rows go, and what is left still answers
    /// repeats until its retention ends. Running rows are marked, and the mark survives take-over
    /// and settling. Gives the number of rows concerned.
    ///
    /// # Errors
    /// If the store cannot tell; forgetting again is harmless.
    fn forget(
        &self,
        conversation: &Conversation,
    ) -> impl Future<Output = Result<u64, Error>> + Send;

    /// Ends a conversation's life now: its rows under
    /// [`Keep::Conversation`](crate::Keep::Conversation) go once they are `idle` past this moment,
    /// unless a new message opens it again.
    ///
    /// # Errors
    /// If the store cannot tell; closing again is harmless.
    fn close(&self, conversation: &Conversation) -> impl Future<Output = Result<(), Error>> + Send;

    /// Removes up to `limit` done rows whose retention has ended, and gives their number. Never
    /// removes a running row. Stores call it themselves; it is here for tests and for operators.
    ///
    /// # Errors
    /// If the store cannot tell.
    fn sweep(&self, limit: usize) -> impl Future<Output = Result<u64, Error>> + Send;

    /// A transaction that the run under this token may borrow; nothing is begun by asking.
    /// Default: the store lends none.
    fn loan(&self, run: Token) -> Option<Arc<dyn Loan>> {
        let _ = run;
        None
    }
}

/// 128 random bits that name one attempt: one request at one process, over all its retries.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Nonce([u8; 16]);

impl Nonce {
    /// A fresh nonce.
    pub fn random() -> Self {
        Self(random())
    }

    /// The bytes, for a store to keep.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Reads what [`as_bytes`](Self::as_bytes) gave.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, ..] = self.0;
        write!(f, "Nonce({a:02x}{b:02x}…)")
    }
}

/// The question: may this attempt run these messages?
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Claim {
    /// Names the attempt.
    pub nonce: Nonce,
    /// How long a granted lease lasts, unless it is renewed.
    pub lease: Duration,
    /// For how long what has lapsed is not taken over, since nobody knows what became of its run;
    /// `None` takes it over at once.
    pub unknown_for: Option<Duration>,
    /// The messages, each key once.
    pub wanted: Vec<Wanted>,
}

/// One message of a [`Claim`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Wanted {
    /// The message's key.
    pub key: Key,
    /// What the request asks for, where the channel compares.
    pub fingerprint: Option<Fingerprint>,
    /// The message's conversation, where the channel knows it.
    pub conversation: Option<Conversation>,
}

impl Claim {
    /// A claim of `wanted` for the attempt called `nonce`.
    pub fn new(nonce: Nonce, lease: Duration, wanted: Vec<Wanted>) -> Self {
        Self {
            nonce,
            lease,
            unknown_for: None,
            wanted,
        }
    }

    /// Takes over only what has been lapsed for this long. Default: `None`, whatever has lapsed.
    pub fn unknown_for(mut self, time: Option<Duration>) -> Self {
        self.unknown_for = time;
        self
    }
}

impl Wanted {
    /// A message with neither fingerprint nor conversation.
    pub fn new(key: Key) -> Self {
        Self {
            key,
            fingerprint: None,
            conversation: None,
        }
    }

    /// Adds what the request asks for.
    pub fn fingerprint(mut self, fingerprint: Fingerprint) -> Self {
        self.fingerprint = Some(fingerprint);
        self
    }

    /// Adds the conversation.
    pub fn conversation(mut self, conversation: Conversation) -> Self {
        self.conversation = Some(conversation);
        self
    }
}

/// The answer for one key.
#[derive(Debug)]
#[non_exhaustive]
pub enum Verdict {
    /// Run it: the lease is yours.
    Run(Lease),
    /// It is done: here is the record.
    Replay(Arc<Record>),
    /// It is running elsewhere.
    Running {
        /// What is left of the other's lease.
        remaining: Duration,
    },
    /// Its run lapsed without an end, and it is not taken over yet.
    Unknown {
        /// What is left until it may be.
        remaining: Duration,
    },
    /// Another request has this key.
    Other {
        /// What that request asked for.
        first: Fingerprint,
    },
}

/// What a look at a key saw.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Sight {
    /// No row.
    Absent,
    /// Running.
    Running {
        /// What is left of the lease; zero if it has lapsed.
        remaining: Duration,
    },
    /// Done.
    Done(Arc<Record>),
}
