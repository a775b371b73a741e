//! The ways of acceptances to the server: one, or two beside each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::error::Error;
use crate::store::postgres::database::Database;
use crate::store::postgres::inbox::accept::{AcceptCall, AcceptJob};
use crate::store::postgres::lanes::Lanes;
use crate::store::postgres::pace::parts;
use crate::store::queue::arrival::Accepted;

/// Where few messages come at once, they go together on one way: halves of them would cost almost
/// as much as all. Where many come, one way keeps no more than one of the server's processors busy.
///
/// With two ways, all that is said of a line goes the same one. Two statements in flight that name
/// the same line would wait for each other's lock on its row.
pub(super) struct AcceptWays {
    first: Lanes<AcceptJob>,
    second: Option<Lanes<AcceptJob>>,
    parted: AtomicBool,
}

impl AcceptWays {
    /// `most` statements at once, on both together.
    pub(super) fn new(database: &Arc<Database>, most: usize, limit: Duration) -> Self {
        let way = |most| Lanes::new(AcceptJob(Arc::clone(database)), most, limit);
        Self {
            first: way(most.div_ceil(2)),
            second: (most > 1).then(|| way(most / 2)),
            parted: AtomicBool::new(false),
        }
    }

    pub(super) async fn ask(&self, call: AcceptCall) -> Result<Vec<Option<Accepted>>, Error> {
        let crowds = |second: &Lanes<AcceptJob>| self.first.crowd().max(second.crowd());
        let way = match &self.second {
            Some(second) if self.part(crowds(second)) && call.is_of_second_half() => second,
            Some(_) | None => &self.first,
        };
        way.ask(call).await
    }

    /// Whether two ways are used, where a statement served so many calls lately.
    fn part(&self, crowd: usize) -> bool {
        let parted = parts(self.parted.load(Ordering::Relaxed), crowd);
        self.parted.store(parted, Ordering::Relaxed);
        parted
    }
}
