//! Settlements: a run is recorded or released, by key and token.

use std::time::Duration;

use rusqlite::{named_params, params};

use crate::error::Error;
use crate::record::{Keep, Record};
use crate::store::lease::{End, Settled, Settlement, Token};
use crate::store::sqlite::batch::Batch;
use crate::store::sqlite::clock::{Moment, milliseconds};
use crate::store::sqlite::conversation;
use crate::store::sqlite::job::{Abandoned, Work};
use crate::store::sqlite::kept;

/// The ends of some runs.
pub(super) struct SettleWork {
    ends: Vec<Ended>,
    tombstone: Vec<u8>,
}

/// The end of one run, with its record's bytes made on the caller's thread.
struct Ended {
    digest: kept::Digest,
    token: Token,
    /// `None` for a release.
    record: Option<(Vec<u8>, Keep)>,
}

impl SettleWork {
    /// # Errors
    /// If a record cannot be written as bytes.
    pub(super) fn new(settlements: &[Settlement]) -> Result<Self, Error> {
        Ok(Self {
            ends: settlements
                .iter()
                .map(Ended::new)
                .collect::<Result<_, _>>()?,
            tombstone: Record::tombstone().to_bytes()?,
        })
    }
}

impl Work for SettleWork {
    type Answer = Vec<Settled>;

    const ABANDONED: Abandoned = Abandoned::Finish;

    fn perform(&self, batch: &mut Batch<'_>) -> Result<Vec<Settled>, Error> {
        let now = Moment::now();
        let settle = |ended: &Ended| {
            let is_applied = match &ended.record {
                Some((record, keep)) => self.record(batch, ended, (record, *keep), now)?,
                None => self.release(batch, ended, now)?,
            };
            if is_applied || was_applied(batch, ended)? {
                Ok(Settled::Applied)
            } else {
                Ok(Settled::Superseded)
            }
        };
        self.ends.iter().map(settle).collect()
    }
}

impl SettleWork {
    fn record(
        &self,
        batch: &Batch<'_>,
        ended: &Ended,
        (record, keep): (&[u8], Keep),
        now: Moment,
    ) -> Result<bool, Error> {
        let (kept_for, idle) = match keep {
            Keep::For(time) => (time, None),
            Keep::Conversation { idle } => (idle, Some(idle)),
        };
        let changed = batch.execute(
            RECORD,
            named_params! {
                ":key": ended.digest,
                ":token": ended.token.number(),
                ":record": record,
                ":tombstone": self.tombstone,
                ":now": now.column(),
                ":idle": idle.map(milliseconds),
                ":expires": now.plus(kept_for).column(),
            },
        )?;
        Ok(changed > 0)
    }

    fn release(&self, batch: &Batch<'_>, ended: &Ended, now: Moment) -> Result<bool, Error> {
        let token = ended.token.number();
        let removed = batch.row(RELEASE, params![ended.digest, token], |row| row.get(0))?;
        if let Some(conversation) = removed {
            let conversation: Option<Vec<u8>> = conversation;
            if let Some(digest) = conversation {
                conversation::leave(batch, &digest)?;
            }
            return Ok(true);
        }
        let changed = batch.execute(
            BURY,
            named_params! {
                ":key": ended.digest,
                ":token": token,
                ":tombstone": self.tombstone,
                ":now": now.column(),
                ":idle": milliseconds(TOMBSTONE_IDLE),
                ":expires": now.plus(TOMBSTONE_IDLE).column(),
            },
        )?;
        Ok(changed > 0)
    }
}

/// Whether the row is done under this token: the settlement is a repeat of one that was applied.
fn was_applied(batch: &Batch<'_>, ended: &Ended) -> Result<bool, Error> {
    let params = params![ended.digest, ended.token.number()];
    let done = batch.row(IS_DONE, params, |_| Ok(()))?;
    Ok(done.is_some())
}

impl Ended {
    fn new(settlement: &Settlement) -> Result<Self, Error> {
        Ok(Self {
            digest: kept::digest(&settlement.hold.key),
            token: settlement.hold.token,
            record: match &settlement.end {
                End::Record { record, keep } => Some((record.to_bytes()?, *keep)),
                End::Release => None,
            },
        })
    }
}

/// How long the tombstone of a released run is kept: a release names no retention of its own.
const TOMBSTONE_IDLE: Duration = Keep::CONVERSATION.at_least();

const RECORD: &str = "
UPDATE idempotency_claims
SET state = 'done', record = iif(forgotten, :tombstone, :record),
    done_at = :now, idle = :idle, expires_at = :expires
WHERE key = :key AND token = :token AND state = 'running'";

const RELEASE: &str = "
DELETE FROM idempotency_claims
WHERE key = ?1 AND token = ?2 AND state = 'running' AND NOT forgotten
RETURNING conversation";

const BURY: &str = "
UPDATE idempotency_claims
SET state = 'done', record = :tombstone,
    done_at = :now, idle = :idle, expires_at = :expires
WHERE key = :key AND token = :token AND state = 'running' AND forgotten";

const IS_DONE: &str = "
SELECT 1 FROM idempotency_claims WHERE key = ?1 AND token = ?2 AND state = 'done'";
