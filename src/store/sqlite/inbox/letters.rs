//! What an operator sees and does.

use bytes::Bytes;
use rusqlite::{Row, params};

use crate::error::Error;
use crate::store::queue::arrival::{Line, Place, Stage};
use crate::store::queue::backlog::{Backlog, DeadLetter, Death};
use crate::store::queue::turn::Waiting;
use crate::store::sqlite::batch::Batch;
use crate::store::sqlite::clock::Moment;
use crate::store::sqlite::inbox::line;
use crate::store::sqlite::job::{Abandoned, Work};
use crate::store::sqlite::kept;

/// Counts what waits and what is dead.
pub(super) struct CountWork;

/// Reads the request of a message that is done.
pub(super) struct KeptWork {
    pub(super) digest: kept::Digest,
}

/// Lists what waits.
pub(super) struct ListWork {
    pub(super) limit: usize,
}

/// Lists what is dead.
pub(super) struct DeadWork {
    pub(super) after: Option<Death>,
    pub(super) limit: usize,
}

/// Undoes deaths.
pub(super) struct RedriveWork {
    pub(super) deaths: Vec<Death>,
}

/// Drops dead messages.
pub(super) struct BuryWork {
    pub(super) deaths: Vec<Death>,
}

impl Work for CountWork {
    type Answer = Backlog;

    const ABANDONED: Abandoned = Abandoned::Drop;

    fn perform(&self, batch: &mut Batch<'_>) -> Result<Backlog, Error> {
        let now = Moment::now();
        let backlog = batch.row(COUNT, [], |row| {
            let oldest: Option<i64> = row.get(3)?;
            let oldest = oldest.map(|at| Moment::from_column(at).until(now));
            Ok(Backlog::new(
                count(row, 0)?,
                count(row, 1)?,
                count(row, 2)?,
                oldest,
            ))
        })?;
        Ok(backlog.unwrap_or_default())
    }
}

fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let count: i64 = row.get(column)?;
    Ok(u64::try_from(count).unwrap_or(0))
}

impl Work for KeptWork {
    type Answer = Option<Bytes>;

    const ABANDONED: Abandoned = Abandoned::Drop;

    fn perform(&self, batch: &mut Batch<'_>) -> Result<Option<Bytes>, Error> {
        let raw = batch.row(KEPT, [self.digest], |row| row.get::<_, Option<Vec<u8>>>(0))?;
        Ok(raw.flatten().map(Bytes::from))
    }
}

impl Work for ListWork {
    type Answer = Vec<Waiting>;

    const ABANDONED: Abandoned = Abandoned::Drop;

    fn perform(&self, batch: &mut Batch<'_>) -> Result<Vec<Waiting>, Error> {
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        batch.rows(LIST, [limit], line::message)
    }
}

impl Work for DeadWork {
    type Answer = Vec<DeadLetter>;

    const ABANDONED: Abandoned = Abandoned::Drop;

    fn perform(&self, batch: &mut Batch<'_>) -> Result<Vec<DeadLetter>, Error> {
        let after = self.after.map_or(i64::MIN, Death::number);
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        batch.rows(DEAD, params![after, limit], letter)
    }
}

fn letter(row: &Row<'_>) -> rusqlite::Result<DeadLetter> {
    let raw: Vec<u8> = row.get(5)?;
    let message = Waiting::new(Place::new(0), line::time(row.get(2)?), Bytes::from(raw))
        .tried(row.get(1)?, row.get(4)?);
    let died_at = line::time(row.get(3)?);
    Ok(DeadLetter::new(Death::new(row.get(0)?), message, died_at))
}

impl Work for RedriveWork {
    type Answer = u64;

    const ABANDONED: Abandoned = Abandoned::Finish;

    fn perform(&self, batch: &mut Batch<'_>) -> Result<u64, Error> {
        let now = Moment::now();
        let mut redriven = 0;
        for death in &self.deaths {
            let back = batch.row(COME_BACK, [death.number()], |row| {
                Ok((Line::from_bytes(row.get(0)?), row.get::<_, Vec<u8>>(1)?))
            })?;
            let Some((line, key)) = back else {
                continue;
            };
            batch.execute(LEAVE, [death.number()])?;
            line::set_stage(batch, &key, Stage::Waiting)?;
            line::join(batch, line, now)?;
            redriven += 1;
        }
        Ok(redriven)
    }
}

impl Work for BuryWork {
    type Answer = u64;

    const ABANDONED: Abandoned = Abandoned::Finish;

    fn perform(&self, batch: &mut Batch<'_>) -> Result<u64, Error> {
        let mut buried = 0;
        for death in &self.deaths {
            let key = batch.row(BURY, [death.number()], |row| row.get::<_, Vec<u8>>(0))?;
            if let Some(key) = key {
                line::set_stage(batch, &key, Stage::Done)?;
                buried += 1;
            }
        }
        Ok(buried)
    }
}

const COUNT: &str = "
SELECT (SELECT count(*) FROM idempotency_inbox_messages),
       (SELECT count(DISTINCT line) FROM idempotency_inbox_messages),
       (SELECT count(*) FROM idempotency_inbox_dead),
       (SELECT min(received_at) FROM idempotency_inbox_messages)";

const KEPT: &str = "
SELECT raw FROM idempotency_inbox_keys WHERE key = ?1";

const LIST: &str = "
SELECT place, failures, received_at, fault, raw FROM idempotency_inbox_messages
ORDER BY place LIMIT ?1";

const DEAD: &str = "
SELECT death, attempts, received_at, died_at, fault, raw FROM idempotency_inbox_dead
WHERE death > ?1 ORDER BY death LIMIT ?2";

const COME_BACK: &str = "
INSERT INTO idempotency_inbox_messages (line, key, failures, received_at, fault, raw)
SELECT line, key, 0, received_at, fault, raw FROM idempotency_inbox_dead WHERE death = ?1
RETURNING line, key";

const LEAVE: &str = "
DELETE FROM idempotency_inbox_dead WHERE death = ?1";

const BURY: &str = "
DELETE FROM idempotency_inbox_dead WHERE death = ?1 RETURNING key";
