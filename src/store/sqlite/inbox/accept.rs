//! Messages come.

use std::time::Duration;

use bytes::Bytes;
use rusqlite::{named_params, params};

use crate::error::Error;
use crate::key::{Conversation, Key};
use crate::record::Keep;
use crate::store::queue::arrival::{Accepted, Arrival, Line, Place, Stage};
use crate::store::sqlite::batch::Batch;
use crate::store::sqlite::clock::{Moment, milliseconds};
use crate::store::sqlite::conversation;
use crate::store::sqlite::inbox::line;
use crate::store::sqlite::job::{Abandoned, Work};
use crate::store::sqlite::kept;

/// Messages that are to be accepted.
pub(crate) struct AcceptWork {
    arrivals: Vec<Coming>,
    lease: Option<Duration>,
}

/// One of them, with its digests made on the caller's thread.
struct Coming {
    key: Key,
    digest: kept::Digest,
    line: Line,
    conversation: Option<(Conversation, kept::Digest)>,
    keep: Keep,
    raw: Bytes,
}

impl AcceptWork {
    pub(crate) fn new(arrivals: &[Arrival], lease: Option<Duration>) -> Self {
        Self {
            arrivals: arrivals.iter().map(Coming::new).collect(),
            lease,
        }
    }
}

impl Coming {
    fn new(arrival: &Arrival) -> Self {
        let conversation = arrival.conversation.as_ref();
        Self {
            key: arrival.key.clone(),
            digest: kept::digest(&arrival.key),
            line: arrival.line(),
            conversation: conversation.map(|c| (c.clone(), kept::conversation_digest(c))),
            keep: arrival.keep,
            raw: arrival.raw.clone(),
        }
    }
}

impl Work for AcceptWork {
    type Answer = Vec<Accepted>;

    /// A turn that nobody hears of would only be in the way.
    const ABANDONED: Abandoned = Abandoned::Drop;

    fn perform(&self, batch: &mut Batch<'_>) -> Result<Vec<Accepted>, Error> {
        let now = Moment::now();
        let accept = |coming| self.accept(batch, coming, now);
        self.arrivals.iter().map(accept).collect()
    }
}

impl AcceptWork {
    fn accept(
        &self,
        batch: &mut Batch<'_>,
        coming: &Coming,
        now: Moment,
    ) -> Result<Accepted, Error> {
        if let Some(stage) = known(batch, coming, now)? {
            return Ok(Accepted::Repeat(stage));
        }
        insert(batch, coming, now)?;
        let begins = line::join(batch, coming.line, now)?;
        let place = batch.row(
            ADD,
            params![
                coming.line.as_bytes(),
                coming.digest,
                now.column(),
                &coming.raw[..]
            ],
            |row| row.get(0),
        )?;
        let place = place.ok_or_else(|| Error::corrupt("a message was given no place"))?;
        let turn = match self.lease {
            Some(lease) if begins => Some(line::lend(batch, coming.line, (now, lease))?.token),
            Some(_) | None => None,
        };
        Ok(Accepted::New {
            place: Place::new(place),
            turn,
        })
    }
}

/// How far the message has come, if it is a repeat. A key whose retention has ended goes.
fn known(batch: &Batch<'_>, coming: &Coming, now: Moment) -> Result<Option<Stage>, Error> {
    let found = batch.row(FIND, [coming.digest], |row| {
        let stage: String = row.get(0)?;
        let idle: Option<i64> = row.get(2)?;
        Ok((stage, Moment::from_column(row.get(1)?), idle))
    })?;
    let Some((stage, expires, idle)) = found else {
        return Ok(None);
    };
    let stage = line::stage(&stage).ok_or_else(|| Error::corrupt("a key has an unknown stage"))?;
    if stage != Stage::Done || expires > now || is_alive(batch, coming, idle, now)? {
        return Ok(Some(stage));
    }
    batch.execute(REMOVE, [coming.digest])?;
    Ok(None)
}

/// Whether the key's conversation had a new message within its idle time.
fn is_alive(
    batch: &Batch<'_>,
    coming: &Coming,
    idle: Option<i64>,
    now: Moment,
) -> Result<bool, Error> {
    let (Some(idle), Some((_, digest))) = (idle, &coming.conversation) else {
        return Ok(false);
    };
    let idle = Duration::from_millis(u64::try_from(idle).unwrap_or(0));
    let latest = conversation::latest(batch, digest)?;
    Ok(latest.is_some_and(|latest| latest.plus(idle) > now))
}

fn insert(batch: &Batch<'_>, coming: &Coming, now: Moment) -> Result<(), Error> {
    let (kept_for, idle) = match (coming.keep, &coming.conversation) {
        (Keep::For(time), _) => (time, None),
        (Keep::Conversation { idle }, Some(_)) => (idle, Some(idle)),
        (Keep::Conversation { idle }, None) => (idle, None),
    };
    batch.execute(
        INSERT,
        named_params! {
            ":key": coming.digest,
            ":channel": coming.key.channel(),
            ":scope": coming.key.scope(),
            ":id": coming.key.id(),
            ":line": coming.line.as_bytes(),
            ":conversation": coming.conversation.as_ref().map(|(_, digest)| digest),
            ":now": now.column(),
            ":idle": idle.map(milliseconds),
            ":expires": now.plus(kept_for).column(),
        },
    )?;
    if let Some((conversation, digest)) = &coming.conversation {
        conversation::open(batch, conversation, digest, now)?;
    }
    Ok(())
}

const FIND: &str = "
SELECT stage, expires_at, idle FROM idempotency_inbox_keys WHERE key = ?1";

const REMOVE: &str = "
DELETE FROM idempotency_inbox_keys WHERE key = ?1";

const INSERT: &str = "
INSERT INTO idempotency_inbox_keys
    (key, channel, scope, id, line, conversation, stage, accepted_at, idle, expires_at)
VALUES
    (:key, :channel, :scope, :id, :line, :conversation, 'waiting', :now, :idle, :expires)";

const ADD: &str = "
INSERT INTO idempotency_inbox_messages (line, key, failures, received_at, raw)
VALUES (?1, ?2, 0, ?3, ?4)
RETURNING place";
