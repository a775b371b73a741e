//! The end of a message whose handler wrote in a transaction of its own.

#[cfg(not(any(test, feature = "testing")))]
use rand::random;

#[cfg(any(test, feature = "testing"))]
use crate::chance::random;
use crate::channel::contract::Channel;
use crate::claimed::Claimed;
use crate::inbox::attempt::{chain, failed};
use crate::inbox::decide::ended;
use crate::inbox::shared::Shared;
use crate::store::loan::Committed;
use crate::store::queue::contract::Queue;
use crate::store::queue::turn::{Ended, Onward, Report};
use crate::store::watched::timed;

/// Ends a message in the transaction in which its handler wrote, if it did, or has effects; gives
/// what is left to be reported, or what the store answered.
///
/// What was not committed is rolled back, and the message is handled again. Where the answer to a
/// commit was lost, a report that it is to be handled again finds no message if it was in force.
pub(crate) async fn end_in_transaction<Q: Queue, C: Channel>(
    shared: &Shared<Q, C>,
    claimed: &Claimed,
    report: Report,
    attempt: u32,
) -> (Report, Option<Onward>) {
    let is_done = is_done(&report);
    let effects = claimed.take_effects(|_| is_done);
    let Some(loan) = claimed.loan() else {
        return (report, None);
    };
    if !is_done || !loan.is_begun() && effects.is_empty() {
        // Also where it was not begun: nobody begins it any more.
        loan.roll_back().await;
        return (report, None);
    }
    let error = match shared
        .within(timed("commit", loan.report(&effects, &report)))
        .await
    {
        Ok(Committed::Applied(onward)) => return (report, Some(onward)),
        Ok(Committed::Superseded) => return (report, Some(Onward::Lost)),
        Ok(Committed::RolledBack(error)) | Err(error) => error,
    };
    let fault = format!("what it wrote was not committed: {}", chain(&error));
    let again = ended(&shared.plan, attempt, failed(fault), random());
    let report = Report {
        ended: report.ended.map(|(place, _)| (place, again)),
        ..report
    };
    (report, None)
}

/// Whether a report says that its message is done.
pub(crate) fn is_done(report: &Report) -> bool {
    matches!(report.ended, Some((_, Ended::Done | Ended::Kept)))
}
