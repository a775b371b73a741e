//! The end of a run, as the store is told.

use std::sync::Arc;

use crate::channel::contract::{Ack, Channel};
use crate::claimed::Claimed;
use crate::flow::commit::commit;
use crate::flow::context::{Asked, Context};
use crate::flow::granted::Granted;
use crate::flow::recording::ack_record;
use crate::flow::settling::{Confirmed, Settling, park, settle_or_go_on};
use crate::outcome::Ends;
use crate::policy::Outcome;
use crate::record::Record;
use crate::store::contract::Store;
use crate::store::lease::{Hold, Lease};
use crate::underway::Mine;

/// How a run ends, and what repeats are given if its messages are done.
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    /// `None` where the answer is no success: a message that is done all the same has the
    /// channel's ack as its record.
    pub(crate) record: Option<Arc<Record>>,
}

impl Ended {
    /// Without a success, and so without a record.
    pub(crate) fn without_record(outcome: Outcome) -> Self {
        Self {
            outcome,
            record: None,
        }
    }
}

/// The right to end a run, spent by ending it.
pub(crate) struct Ending {
    pub(crate) leases: Vec<Lease>,
    pub(crate) claimed: Claimed,
    pub(crate) ends: Ends,
    pub(crate) ack: Ack,
    pub(crate) mine: Mine,
}

impl Ending {
    pub(crate) fn of(granted: Granted, claimed: Claimed, asked: &Asked<'_>) -> Self {
        let leases = granted.leases.into_iter();
        Self {
            leases: leases.map(|(_, lease)| lease).collect(),
            claimed,
            ends: asked.ends,
            ack: asked.terms.ack.clone(),
            mine: granted.mine,
        }
    }

    pub(crate) fn holds(&self) -> Vec<Hold> {
        self.leases.iter().map(Lease::hold).collect()
    }

    /// Ends the run, as the handler said for single messages and as `ended` says for the rest.
    ///
    /// What it wrote in the run's transaction is committed with the records, or rolled back if the
    /// run is no success; then none of its messages is done, whatever was said of it.
    ///
    /// If the store does not confirm it, that is tried again in the background.
    pub(crate) async fn settle<S: Store, C: Channel>(
        self,
        context: &Arc<Context<S, C>>,
        ended: Ended,
    ) -> Confirmed {
        let claimed = self.claimed;
        let in_transaction = claimed.is_in_transaction();
        let is_record = |outcome: Outcome| matches!(outcome, Outcome::Record(_));
        let is_undone = in_transaction && !is_record(ended.outcome);
        let outcome = |at| match claimed.said(at) {
            Some(said) if !is_undone => self.ends.obey(said),
            Some(_) | None => ended.outcome,
        };
        let effects = claimed.take_effects(|at| is_record(outcome(at)));
        let is_committing = in_transaction && !is_undone || !effects.is_empty();
        if !is_committing && let Some(loan) = claimed.loan() {
            // Also where it was not begun: nobody begins it any more.
            loan.roll_back().await;
        }
        let record = ended
            .record
            .unwrap_or_else(|| Arc::new(ack_record(&self.ack)));
        let mut parked = Vec::new();
        let mut settlements = Vec::with_capacity(self.leases.len());
        for (at, lease) in self.leases.into_iter().enumerate() {
            match outcome(at) {
                Outcome::Record(keep) => settlements.push(lease.record(Arc::clone(&record), keep)),
                Outcome::Release => settlements.push(lease.release()),
                Outcome::Unknown => parked.push(lease.hold()),
            }
        }
        park(context, &parked).await;
        if settlements.is_empty() {
            return Confirmed::Applied;
        }
        let settling = Settling {
            settlements,
            mine: self.mine,
            claimed: claimed.clone(),
        };
        match claimed.loan() {
            Some(loan) if is_committing => commit(context, &**loan, &effects, settling).await,
            Some(_) | None => settle_or_go_on(context, settling).await,
        }
    }
}
