//! Sweeping: rows whose retention has ended go, a few at a time.

use std::time::{Duration, Instant};

use rusqlite::{Connection, Row, params};

use crate::error::Error;
use crate::store::sqlite::batch::Batch;
use crate::store::sqlite::clock::Moment;
use crate::store::sqlite::conversation;
use crate::store::sqlite::fault;
use crate::store::sqlite::job::{Abandoned, Work};
use crate::store::sqlite::kept;
use crate::store::sqlite::tables::Tables;

/// What one step of sweeping did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Swept {
    pub(super) removed: u64,
    pub(super) rest: Rest,
}

/// Whether more is to be swept now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    None,
    Some,
}

/// One step of sweeping that somebody asked for.
pub(super) struct SweepWork {
    pub(super) limit: u64,
}

impl Work for SweepWork {
    type Answer = Swept;

    const ABANDONED: Abandoned = Abandoned::Drop;

    fn perform(&self, batch: &mut Batch<'_>) -> Result<Swept, Error> {
        step(batch, self.limit, LONGEST)
    }
}

/// Removes up to `limit` rows, and stops early if they take longer than `longest`, apart from the
/// few that it has begun: the calls behind come first.
///
/// A row under `Keep::Conversation` whose conversation went on is looked at again when its time
/// has come by what is known now.
pub(super) fn step(batch: &Batch<'_>, limit: u64, longest: Duration) -> Result<Swept, Error> {
    let began = Instant::now();
    let claims = step_of(&CLAIMS, batch, limit, longest)?;
    if claims.rest == Rest::Some {
        return Ok(claims);
    }
    let left = longest.saturating_sub(began.elapsed());
    let keys = step_of(&INBOX, batch, limit - claims.removed, left)?;
    let removed = claims.removed + keys.removed;
    if keys.rest == Rest::Some {
        return Ok(Swept { removed, ..keys });
    }
    let left = longest.saturating_sub(began.elapsed());
    let before = batch.turn_to(Tables::Outbox);
    let effects = step_of(&INBOX, batch, limit - removed, left);
    batch.turn_to(before);
    let effects = effects?;
    Ok(Swept {
        removed: removed + effects.removed,
        ..effects
    })
}

/// Removes a key's row if its retention has ended. Gives whether it was removed.
pub(super) fn end(batch: &Batch<'_>, key: &kept::Digest, now: Moment) -> Result<bool, Error> {
    let due = batch.row(ENDED, params![key, now.column()], due)?;
    match due {
        Some(row) => sweep(&CLAIMS, batch, &row, now),
        None => Ok(false),
    }
}

/// Rows of one table whose retention ends.
struct Ending {
    due: &'static str,
    put_off: &'static str,
    remove: &'static str,
}

fn step_of(
    ending: &Ending,
    batch: &Batch<'_>,
    limit: u64,
    longest: Duration,
) -> Result<Swept, Error> {
    let began = Instant::now();
    let mut removed = 0;
    while removed < limit && began.elapsed() < longest {
        let now = Moment::now();
        let at_once = CHUNK.min(limit - removed);
        let limits = params![now.column(), column(at_once)];
        let due = batch.rows(ending.due, limits, due)?;
        for row in &due {
            removed += u64::from(sweep(ending, batch, row, now)?);
        }
        if column(at_once) > column_of(due.len()) {
            return Ok(Swept {
                removed,
                rest: Rest::None,
            });
        }
    }
    Ok(Swept {
        removed,
        rest: Rest::Some,
    })
}

/// Whether there is anything to sweep. Writes nothing and takes no lock.
pub(super) fn is_due(connection: &Connection) -> Result<bool, Error> {
    let look = || {
        connection
            .prepare_cached(IS_DUE)?
            .query_row([Moment::now().column()], |row| row.get(0))
    };
    look().map_err(fault::of_call)
}

struct Due {
    number: i64,
    conversation: Option<Vec<u8>>,
    idle: Option<i64>,
}

fn due(row: &Row<'_>) -> rusqlite::Result<Due> {
    Ok(Due {
        number: row.get(0)?,
        conversation: row.get(1)?,
        idle: row.get(2)?,
    })
}

/// Removes the row, or puts it off. Gives whether it was removed.
fn sweep(ending: &Ending, batch: &Batch<'_>, row: &Due, now: Moment) -> Result<bool, Error> {
    if let (Some(digest), Some(idle)) = (&row.conversation, row.idle)
        && let Some(latest) = conversation::latest(batch, digest)?
    {
        let idle = Duration::from_millis(u64::try_from(idle).unwrap_or(0));
        let expires = latest.plus(idle);
        if expires > now {
            batch.execute(ending.put_off, params![row.number, expires.column()])?;
            return Ok(false);
        }
    }
    batch.execute(ending.remove, [row.number])?;
    if let Some(digest) = &row.conversation {
        conversation::leave(batch, digest)?;
    }
    Ok(true)
}

fn column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn column_of(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// How many rows are read at once.
const CHUNK: u64 = 16;

/// How long a step lasts where nothing else says so.
pub(super) const LONGEST: Duration = Duration::from_millis(2);

const CLAIMS: Ending = Ending {
    due: "
SELECT number, conversation, idle FROM idempotency_claims
WHERE expires_at <= ?1 AND state = 'done'
ORDER BY expires_at LIMIT ?2",
    put_off: "
UPDATE idempotency_claims SET expires_at = ?2 WHERE number = ?1",
    remove: "
DELETE FROM idempotency_claims WHERE number = ?1",
};

const ENDED: &str = "
SELECT number, conversation, idle FROM idempotency_claims
WHERE key = ?1 AND state = 'done' AND expires_at <= ?2";

const INBOX: Ending = Ending {
    due: "
SELECT number, conversation, idle FROM idempotency_inbox_keys
WHERE expires_at <= ?1 AND stage = 'done'
ORDER BY expires_at LIMIT ?2",
    put_off: "
UPDATE idempotency_inbox_keys SET expires_at = ?2 WHERE number = ?1",
    remove: "
DELETE FROM idempotency_inbox_keys WHERE number = ?1",
};

const IS_DUE: &str = "
SELECT EXISTS (SELECT 1 FROM idempotency_claims WHERE expires_at <= ?1)
    OR EXISTS (SELECT 1 FROM idempotency_inbox_keys WHERE expires_at <= ?1 AND stage = 'done')
    OR EXISTS (SELECT 1 FROM idempotency_effects_keys WHERE expires_at <= ?1 AND stage = 'done')";
