//! The row of a line, and the messages in it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use rusqlite::{Row, params};

use crate::error::Error;
use crate::store::queue::arrival::{Line, Place, Stage};
use crate::store::queue::turn::{TurnHold, Waiting};
use crate::store::sqlite::batch::Batch;
use crate::store::sqlite::clock::Moment;

/// A message comes: its line begins with it, or is due for it if it waits only for messages that
/// others may pass. Gives whether it begins.
pub(super) fn join(batch: &Batch<'_>, line: Line, now: Moment) -> Result<bool, Error> {
    let params = params![line.as_bytes(), now.column()];
    if batch
        .row(IS_THERE, [line.as_bytes()], |_| Ok(()))?
        .is_some()
    {
        batch.execute(JOIN, params)?;
        return Ok(false);
    }
    batch.execute(BEGIN, params)?;
    Ok(true)
}

/// Gives the turn of a line to somebody new. If somebody had it, it has lapsed.
pub(super) fn lend(
    batch: &mut Batch<'_>,
    line: Line,
    (now, lease): (Moment, Duration),
) -> Result<TurnHold, Error> {
    let token = batch.next_token()?;
    let until = now.plus(lease).column();
    batch.execute(LEND, params![line.as_bytes(), token.number(), until])?;
    batch.spend(token);
    Ok(TurnHold::new(line, token))
}

/// Whether the turn is the holder's.
pub(super) fn is_turn(batch: &Batch<'_>, hold: TurnHold) -> Result<bool, Error> {
    let params = params![hold.line.as_bytes(), hold.token.number()];
    Ok(batch.row(IS_TURN, params, |_| Ok(()))?.is_some())
}

/// Extends the turn; gives whether it is the holder's.
pub(super) fn renew(batch: &Batch<'_>, hold: TurnHold, until: Moment) -> Result<bool, Error> {
    let (line, token) = (hold.line.as_bytes(), hold.token.number());
    Ok(batch.execute(RENEW, params![line, token, until.column()])? > 0)
}

/// A message of the turn has ended: what lapsed before does not count for the next one.
pub(super) fn begin_anew(batch: &Batch<'_>, line: Line) -> Result<(), Error> {
    batch.execute(BEGIN_ANEW, [line.as_bytes()])?;
    Ok(())
}

/// Ends the turn, and lets nobody have it before `until`.
pub(super) fn hold_back(batch: &Batch<'_>, line: Line, until: Moment) -> Result<(), Error> {
    batch.execute(HOLD_BACK, params![line.as_bytes(), until.column()])?;
    Ok(())
}

/// Ends the turn. The line is due when its first message is; without messages it goes.
pub(super) fn give_back(batch: &Batch<'_>, line: Line, now: Moment) -> Result<(), Error> {
    let due: Option<i64> = batch
        .row(FIRST_DUE, params![line.as_bytes(), now.column()], |row| {
            row.get(0)
        })?
        .flatten();
    match due {
        Some(due) => batch.execute(GIVE_BACK, params![line.as_bytes(), due])?,
        None => batch.execute(END, [line.as_bytes()])?,
    };
    Ok(())
}

/// The first messages of a line that may be handled now.
pub(super) fn ready(
    batch: &Batch<'_>,
    line: Line,
    most: usize,
    now: Moment,
) -> Result<Vec<Waiting>, Error> {
    let lapses: Option<u32> = batch.row(LAPSES, [line.as_bytes()], |row| row.get(0))?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let params = params![line.as_bytes(), now.column(), most];
    let mut messages = batch.rows(READY, params, message)?;
    if let Some(first) = messages.first_mut() {
        first.attempt = first.attempt.saturating_add(lapses.unwrap_or(0));
    }
    Ok(messages)
}

/// Reads `place, failures, received_at, fault, raw`.
pub(super) fn message(row: &Row<'_>) -> rusqlite::Result<Waiting> {
    let failures: u32 = row.get(1)?;
    let raw: Vec<u8> = row.get(4)?;
    let place = Place::new(row.get(0)?);
    let message = Waiting::new(place, time(row.get(2)?), Bytes::from(raw));
    Ok(message.tried(failures.saturating_add(1), row.get(3)?))
}

/// A time that people read.
pub(super) fn time(milliseconds: i64) -> SystemTime {
    let since = Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0));
    UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH)
}

/// How a stage stands in its column.
pub(super) fn name(stage: Stage) -> &'static str {
    match stage {
        Stage::Waiting => "waiting",
        Stage::Done => "done",
        Stage::Dead => "dead",
    }
}

pub(super) fn stage(name: &str) -> Option<Stage> {
    [Stage::Waiting, Stage::Done, Stage::Dead]
        .into_iter()
        .find(|stage| self::name(*stage) == name)
}

pub(super) fn set_stage(batch: &Batch<'_>, key: &[u8], stage: Stage) -> Result<(), Error> {
    batch.execute(SET_STAGE, params![key, name(stage)])?;
    Ok(())
}

/// The messages of a conversation go, waiting and dead ones; their keys stay. Gives how many.
pub(crate) fn forget(batch: &Batch<'_>, conversation: &[u8; 16]) -> Result<usize, Error> {
    let waiting = batch.execute(FORGET_WAITING, [conversation])?;
    let dead = batch.execute(FORGET_DEAD, [conversation])?;
    let kept = batch.execute(FORGET_KEPT, [conversation])?;
    batch.execute(FORGET_STAGES, [conversation])?;
    batch.execute(FORGET_LINE, [conversation])?;
    Ok(waiting + dead + kept)
}

const IS_THERE: &str = "
SELECT 1 FROM idempotency_inbox_lines WHERE line = ?1";

const BEGIN: &str = "
INSERT INTO idempotency_inbox_lines (line, due_at, token, held, lapses)
VALUES (?1, ?2, NULL, 0, 0)";

const JOIN: &str = "
UPDATE idempotency_inbox_lines SET due_at = ?2
WHERE line = ?1 AND token IS NULL AND NOT held AND due_at > ?2";

const LEND: &str = "
UPDATE idempotency_inbox_lines
SET lapses = lapses + (token IS NOT NULL), token = ?2, due_at = ?3, held = 0
WHERE line = ?1";

const IS_TURN: &str = "
SELECT 1 FROM idempotency_inbox_lines WHERE line = ?1 AND token = ?2";

const RENEW: &str = "
UPDATE idempotency_inbox_lines SET due_at = ?3 WHERE line = ?1 AND token = ?2";

const BEGIN_ANEW: &str = "
UPDATE idempotency_inbox_lines SET lapses = 0 WHERE line = ?1 AND lapses > 0";

const HOLD_BACK: &str = "
UPDATE idempotency_inbox_lines SET token = NULL, held = 1, due_at = ?2 WHERE line = ?1";

const FIRST_DUE: &str = "
SELECT min(coalesce(due_at, ?2)) FROM idempotency_inbox_messages WHERE line = ?1";

const GIVE_BACK: &str = "
UPDATE idempotency_inbox_lines SET token = NULL, held = 0, due_at = ?2 WHERE line = ?1";

const END: &str = "
DELETE FROM idempotency_inbox_lines WHERE line = ?1";

const LAPSES: &str = "
SELECT lapses FROM idempotency_inbox_lines WHERE line = ?1";

const READY: &str = "
SELECT place, failures, received_at, fault, raw FROM idempotency_inbox_messages
WHERE line = ?1 AND (due_at IS NULL OR due_at <= ?2)
ORDER BY place LIMIT ?3";

const SET_STAGE: &str = "
UPDATE idempotency_inbox_keys SET stage = ?2 WHERE key = ?1";

const FORGET_WAITING: &str = "
DELETE FROM idempotency_inbox_messages WHERE line = ?1";

const FORGET_DEAD: &str = "
DELETE FROM idempotency_inbox_dead WHERE line = ?1";

const FORGET_KEPT: &str = "
UPDATE idempotency_inbox_keys SET raw = NULL WHERE conversation = ?1 AND raw IS NOT NULL";

const FORGET_STAGES: &str = "
UPDATE idempotency_inbox_keys SET stage = 'done' WHERE conversation = ?1 AND stage <> 'done'";

const FORGET_LINE: &str = "
DELETE FROM idempotency_inbox_lines WHERE line = ?1 AND token IS NULL";
