//! Turns are taken and renewed.

use std::time::Duration;

use rusqlite::params;

use crate::error::Error;
use crate::store::lease::Standing;
use crate::store::queue::arrival::Line;
use crate::store::queue::turn::{Turn, TurnHold};
use crate::store::sqlite::batch::Batch;
use crate::store::sqlite::clock::Moment;
use crate::store::sqlite::inbox::line;
use crate::store::sqlite::job::{Abandoned, Work};

/// A look for lines that are due.
pub(super) struct TakeWork {
    pub(super) lines: usize,
    pub(super) messages: usize,
    pub(super) lease: Duration,
}

/// Turns that are to be renewed.
pub(super) struct RenewWork {
    pub(super) turns: Vec<TurnHold>,
    pub(super) lease: Duration,
}

impl Work for TakeWork {
    type Answer = Vec<Turn>;

    const ABANDONED: Abandoned = Abandoned::Drop;

    fn perform(&self, batch: &mut Batch<'_>) -> Result<Vec<Turn>, Error> {
        let now = Moment::now();
        let lines = i64::try_from(self.lines).unwrap_or(i64::MAX);
        let due = batch.rows(DUE, params![now.column(), lines], |row| {
            let due = Moment::from_column(row.get(1)?);
            Ok((Line::from_bytes(row.get(0)?), due))
        })?;
        let take = |(line, due): (Line, Moment)| {
            let hold = line::lend(batch, line, (now, self.lease))?;
            let messages = line::ready(batch, line, self.messages, now)?;
            Ok(Turn::new(hold, due.until(now), messages))
        };
        due.into_iter().map(take).collect()
    }
}

impl Work for RenewWork {
    type Answer = Vec<Standing>;

    const ABANDONED: Abandoned = Abandoned::Drop;

    fn perform(&self, batch: &mut Batch<'_>) -> Result<Vec<Standing>, Error> {
        let until = Moment::now().plus(self.lease);
        let renew = |hold: &TurnHold| {
            Ok(if line::renew(batch, *hold, until)? {
                Standing::Renewed
            } else {
                Standing::Lost
            })
        };
        self.turns.iter().map(renew).collect()
    }
}

const DUE: &str = "
SELECT line, due_at FROM idempotency_inbox_lines
WHERE due_at <= ?1 ORDER BY due_at LIMIT ?2";
