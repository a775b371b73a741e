//! What a store owes that holds an inbox: messages wait in lines, and are handled in turns.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;

use crate::error::Error;
use crate::key::Key;
use crate::store::contract::Store;
use crate::store::lease::Standing;
use crate::store::queue::arrival::{Accepted, Arrival};
use crate::store::queue::backlog::{Backlog, DeadLetter, Death};
use crate::store::queue::turn::{Onward, Report, Turn, TurnHold, Waiting};

/// A store that holds an inbox: messages are accepted, wait, and are handled in their turn.
///
/// ```text
///  accept                take                  report: done
///  ───────▶ waiting ───────────────▶ running ────────────────▶ (key only) ── sweep ─▶ (no row)
///             ▲  ▲                    │   │
///             │  └────────────────────┘   └────────────────▶ dead
///             │    report: later            report: dead      │
///             └───────────────────────────────────────────────┘ redrive
/// ```
///
/// Messages of one conversation wait in one [`Line`](crate::store::Line); a message without a conversation is a line
/// by itself. A [`Turn`] is the lease on a whole line: whoever has it handles the line's messages
/// one by one, in order.
///
/// An inbox's keys are apart from those that [`claim`](Store::claim) gives out.
///
/// An implementer owes, beside what each method says and what [`Store`] asks for:
/// * **one turn per line**, enforced by a lock or a unique row of the line, not by looking at what
///   else is there;
/// * **order**: a place is drawn while the line is locked, so that of two messages of a line the
///   one whose acceptance was answered first has the lower place;
/// * **no lost message**: a line ends only if it holds no message, judged while it is locked.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a store that holds an inbox",
    label = "not a store that holds an inbox",
    note = "`SqliteStore`, `PostgresStore` and `BoxStore` do, and `MemoryStore` for tests; a store of one's own \
            implements `Queue` beside `Store`"
)]
pub trait Queue: Store {
    /// Whether what was accepted outlives the process.
    fn is_durable(&self) -> bool;

    /// Keeps new messages, each with its key in one commit, in the order of the call; changes
    /// nothing where the key is known. Each key once.
    ///
    /// With `lease`, lines that this call begins are given to the caller at once: the answer for
    /// the first message of such a line names the turn, as if it had been [taken](Self::take).
    ///
    /// # Errors
    /// If the store cannot tell. The messages may have been kept all the same; accepting them
    /// again finds out.
    fn accept(
        &self,
        arrivals: &[Arrival],
        lease: Option<Duration>,
    ) -> impl Future<Output = Result<Vec<Accepted>, Error>> + Send;

    /// Takes the turns of up to `lines` lines that are due: those due longest first, each with up
    /// to `messages` of its messages, the first ones first. Waits for no other caller.
    ///
    /// A line is due if it has a message that may be handled now and nobody has its turn, or
    /// whoever had it let it lapse. Taking over a lapsed turn counts an attempt of its first
    /// message.
    ///
    /// # Errors
    /// If the store cannot tell. Turns that were taken all the same lapse.
    fn take(
        &self,
        lines: usize,
        messages: usize,
        lease: Duration,
    ) -> impl Future<Output = Result<Vec<Turn>, Error>> + Send;

    /// Extends turns to `lease` from now. Also extends one that has lapsed and was not taken over.
    ///
    /// # Errors
    /// If the store cannot tell.
    fn renew_turns(
        &self,
        turns: &[TurnHold],
        lease: Duration,
    ) -> impl Future<Output = Result<Vec<Standing>, Error>> + Send;

    /// Ends messages, or gives turns back, by line **and** token. A report under another token
    /// changes nothing and answers [`Onward::Lost`].
    ///
    /// A report that was applied before and whose turn goes on changes nothing and is answered
    /// again; one that had ended its turn answers [`Onward::Lost`].
    ///
    /// # Errors
    /// If the store cannot tell; reporting again finds out.
    fn report(&self, reports: &[Report])
    -> impl Future<Output = Result<Vec<Onward>, Error>> + Send;

    /// The raw request of a message that ended as [`Kept`](crate::store::Ended::Kept), until its
    /// key's retention ends or its conversation is forgotten.
    ///
    /// # Errors
    /// If the store cannot tell.
    fn kept(&self, key: &Key) -> impl Future<Output = Result<Option<Bytes>, Error>> + Send;

    /// What waits and what is dead, in numbers.
    ///
    /// # Errors
    /// If the store cannot tell.
    fn backlog(&self) -> impl Future<Output = Result<Backlog, Error>> + Send;

    /// Waiting messages, the first ones of all lines first; running ones are among them.
    ///
    /// # Errors
    /// If the store cannot tell.
    fn waiting(&self, limit: usize) -> impl Future<Output = Result<Vec<Waiting>, Error>> + Send;

    /// Dead messages behind `after`, in the order of their deaths.
    ///
    /// # Errors
    /// If the store cannot tell.
    fn dead(
        &self,
        after: Option<Death>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<DeadLetter>, Error>> + Send;

    /// Puts dead messages back, each at the end of its line, with all its attempts before it.
    /// Gives how many were: a death that was undone before, or never was, is none.
    ///
    /// # Errors
    /// If the store cannot tell; asking again is harmless.
    fn redrive(&self, deaths: &[Death]) -> impl Future<Output = Result<u64, Error>> + Send;

    /// Drops dead messages; their keys stay, so that a repeat is still one. Gives how many were.
    ///
    /// # Errors
    /// If the store cannot tell; asking again is harmless.
    fn bury(&self, deaths: &[Death]) -> impl Future<Output = Result<u64, Error>> + Send;

    /// The store's outbox: an inbox of its own in the same database, for the effects that
    /// [loans](crate::store::Loan) put there. Default: the store has none.
    fn outbox(&self) -> Option<Self> {
        None
    }

    /// Told when this process put effects into the outbox. Default: nobody is told.
    fn news(&self) -> Option<Arc<Notify>> {
        None
    }
}
