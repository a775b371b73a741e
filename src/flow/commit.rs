//! The end of a run that writes in a transaction of its own.

use std::sync::Arc;

use crate::channel::contract::Channel;
use crate::error::Error;
use crate::flow::context::Context;
use crate::flow::settling::{
    Confirmed, Settling, Undone, afterwards, is_record, released, settle_now, settle_or_go_on,
};
use crate::store::contract::Store;
use crate::store::lease::{Settled, Settlement};
use crate::store::loan::{Committed, Loan};
use crate::store::queue::arrival::Arrival;
use crate::store::watched::timed;
use crate::watch::emit::count;
use crate::watch::metric::ENDS;

/// Commits what the handler wrote, its effects and the records; messages that it gave back follow.
///
/// If that fails, every message of the run is given back. Whether a commit whose answer was lost is
/// in force is found out, not guessed.
pub(crate) async fn commit<S: Store, C: Channel>(
    context: &Arc<Context<S, C>>,
    loan: &dyn Loan,
    effects: &[Arrival],
    settling: Settling,
) -> Confirmed {
    let Settling {
        settlements,
        mine,
        claimed,
    } = settling;
    let (records, mut given_back): (Vec<_>, Vec<_>) = settlements.into_iter().partition(is_record);
    let committing = timed("commit", loan.record(effects, &records));
    let confirmed = match context.within(committing).await {
        Ok(committed) => confirmed(committed, &records),
        Err(_) => find_out(context, &records).await,
    };
    match &confirmed {
        Confirmed::Applied => {
            context.counters.recorded.add(records.len());
            for record in &records {
                count(ENDS, [record.hold.key.channel(), "recorded"], 1);
            }
            afterwards(context, &claimed);
        }
        // Counted as its messages are given back.
        Confirmed::Superseded(_) => {}
        Confirmed::Unconfirmed | Confirmed::RolledBack(_) => context.counters.roll_back(),
    }
    if confirmed != Confirmed::Applied {
        // By their tokens: a row that another run has, or that is done, is not touched.
        given_back.extend(records.iter().map(released));
    }
    if !given_back.is_empty() {
        let settling = Settling {
            settlements: given_back,
            mine,
            claimed,
        };
        settle_or_go_on(context, settling).await;
    }
    confirmed
}

fn confirmed(committed: Committed<()>, records: &[Settlement]) -> Confirmed {
    match committed {
        Committed::Applied(()) => Confirmed::Applied,
        // All that were to be done together: those that nobody took over are given back.
        Committed::Superseded => {
            let keys = records.iter().map(|record| record.hold.key.clone());
            Confirmed::Superseded(keys.collect())
        }
        Committed::RolledBack(error) => {
            say(&error);
            Confirmed::RolledBack(if error.is_misconfigured() {
                Undone::Misused
            } else {
                Undone::Failed
            })
        }
    }
}

/// What the cause says may quote what a customer wrote.
fn say(error: &Error) {
    let cause = std::error::Error::source(error);
    tracing::error!(%error, "what a handler wrote was rolled back");
    tracing::debug!(?cause, "why it was rolled back");
}

/// Whether a commit is in force whose answer was lost.
///
/// To give the messages back waits for what is left of the transaction, which holds their rows
/// once it has recorded them: it finds them done, or makes sure that they never will be.
async fn find_out<S: Store, C: Channel>(
    context: &Context<S, C>,
    records: &[Settlement],
) -> Confirmed {
    let given_back: Vec<_> = records.iter().map(released).collect();
    match settle_now(context, &given_back).await {
        Some(settled) if settled.iter().all(|s| *s == Settled::Superseded) => {}
        Some(_) => return Confirmed::RolledBack(Undone::Failed),
        None => return Confirmed::RolledBack(Undone::Unknown),
    }
    // None of them runs under these tokens: this writes nothing, and tells which are done.
    match settle_now(context, records).await {
        Some(settled) if settled.iter().all(|s| *s == Settled::Applied) => Confirmed::Applied,
        Some(_) => {
            let keys = records.iter().map(|record| record.hold.key.clone());
            Confirmed::Superseded(keys.collect())
        }
        None => Confirmed::RolledBack(Undone::Unknown),
    }
}
