//! What an application does about a run that ended without a word.

use std::time::Duration;

use crate::error::Error;
use crate::key::Key;
use crate::store::contract::{Claim, Nonce, Sight, Store, Verdict, Wanted};
use crate::store::lease::{End, Settled, Settlement};

/// What became of the attempt to settle a message whose outcome was unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resolved {
    /// It is settled as was said.
    Applied,
    /// Nothing changed: its run is alive, as far as the store knows.
    Running {
        /// What is left of the run's lease.
        remaining: Duration,
    },
    /// Nothing changed: it is done.
    Done,
    /// Nothing changed: the key has no row. It never ran, was released, or is past its retention.
    Absent,
}

/// Settles a message whose run ended without saying whether its work was done: records it as done,
/// or releases it, so that the next repeat runs.
///
/// For applications and operators that found out, in any process: all it takes is the store and
/// the key. A layer's [`settle_unknown`](crate::IdempotencyLayer::settle_unknown) knows the record
/// of an ack and the retention besides. The key of a row is [`Key::restored`] of its columns
/// `channel`, `scope` and `id`.
///
/// Changes only a row that is running and whose lease has lapsed, which is what a parked row is.
/// The row is taken over first: a run that goes on after all, in a process that was paused, can
/// then no longer record its own answer, and its caller gets the one that is given here, or is told
/// to come again. What such a run does in other systems nobody can stop: the longer a row has been
/// unknown, the surer is what was found out.
///
/// Three store calls. Dropped or failed half way, it is done or not, or the key counts as running
/// for half a minute and then as unknown again; call it again.
///
/// # Errors
/// If the store cannot tell.
///
/// ```
/// use tower_idempotency::store::{End, MemoryStore, Resolved, settle_unknown};
/// use tower_idempotency::Key;
///
/// # async fn settle(store: &MemoryStore) -> Result<(), tower_idempotency::Error> {
/// let key = Key::restored("payments", "alice", "9b1d");
/// if settle_unknown(store, &key, End::Release).await? == Resolved::Applied {
///     println!("the next repeat runs");
/// }
/// # Ok(())
/// # }
/// ```
pub async fn settle_unknown<S: Store>(store: &S, key: &Key, end: End) -> Result<Resolved, Error> {
    let stands = look(store, key).await?;
    if stands
        != (Resolved::Running {
            remaining: Duration::ZERO,
        })
    {
        return Ok(stands);
    }
    let claim = Claim::new(Nonce::random(), LEASE, vec![Wanted::new(key.clone())]);
    let lease = match store.claim(&claim).await?.pop() {
        Some(Verdict::Run(lease)) => lease,
        Some(Verdict::Replay(_)) => return Ok(Resolved::Done),
        Some(Verdict::Running { remaining } | Verdict::Unknown { remaining }) => {
            return Ok(Resolved::Running { remaining });
        }
        Some(Verdict::Other { .. }) | None => return look(store, key).await,
    };
    if lease.attempt() == 1 {
        // The row went since the look, and this is a new one.
        store.settle(&[lease.release()]).await?;
        return Ok(Resolved::Absent);
    }
    let hold = lease.hold();
    match store.settle(&[Settlement { hold, end }]).await?.pop() {
        Some(Settled::Applied) => Ok(Resolved::Applied),
        Some(Settled::Superseded) | None => look(store, key).await,
    }
}

async fn look<S: Store>(store: &S, key: &Key) -> Result<Resolved, Error> {
    let sight = store.look(std::slice::from_ref(key)).await?.pop();
    Ok(match sight {
        Some(Sight::Running { remaining }) => Resolved::Running { remaining },
        Some(Sight::Done(_)) => Resolved::Done,
        Some(Sight::Absent) | None => Resolved::Absent,
    })
}

/// How long the settling itself may take.
const LEASE: Duration = Duration::from_secs(30);
