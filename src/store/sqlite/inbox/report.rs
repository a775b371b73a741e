//! Messages of a turn end.

use rusqlite::{named_params, params};

use crate::error::Error;
use crate::store::queue::arrival::{Line, Place, Stage};
use crate::store::queue::turn::{Behind, Ended, Onward, Report, Then};
use crate::store::sqlite::batch::Batch;
use crate::store::sqlite::clock::Moment;
use crate::store::sqlite::inbox::line;
use crate::store::sqlite::job::{Abandoned, Work};

/// The ends of some messages.
pub(crate) struct ReportWork {
    pub(crate) reports: Vec<Report>,
}

impl Work for ReportWork {
    type Answer = Vec<Onward>;

    const ABANDONED: Abandoned = Abandoned::Finish;

    fn perform(&self, batch: &mut Batch<'_>) -> Result<Vec<Onward>, Error> {
        let now = Moment::now();
        let report = |report| perform(batch, report, now);
        self.reports.iter().map(report).collect()
    }
}

/// Whether the turn goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goes {
    On,
    NoFurther,
}

fn perform(batch: &Batch<'_>, report: &Report, now: Moment) -> Result<Onward, Error> {
    let line = report.hold.line;
    if !line::is_turn(batch, report.hold)? {
        return Ok(Onward::Lost);
    }
    if let Some((place, ended)) = &report.ended {
        line::begin_anew(batch, line)?;
        if end(batch, line, *place, ended, now)? == Goes::NoFurther {
            return Ok(Onward::Ended);
        }
    }
    let next = match report.then {
        Then::GoOn => return Ok(Onward::Next(Vec::new())),
        Then::Read(most) => line::ready(batch, line, most, now)?,
        Then::GiveBack => Vec::new(),
    };
    if !next.is_empty() {
        return Ok(Onward::Next(next));
    }
    line::give_back(batch, line, now)?;
    Ok(Onward::Ended)
}

fn end(
    batch: &Batch<'_>,
    line: Line,
    place: Place,
    ended: &Ended,
    now: Moment,
) -> Result<Goes, Error> {
    match ended {
        Ended::Done => {
            let key = batch.row(REMOVE, params![place.number(), line.as_bytes()], |row| {
                row.get::<_, Vec<u8>>(0)
            })?;
            if let Some(key) = key {
                line::set_stage(batch, &key, Stage::Done)?;
            }
        }
        Ended::Kept => {
            batch.execute(STAY, params![place.number(), line.as_bytes()])?;
            batch.row(REMOVE, params![place.number(), line.as_bytes()], |_| Ok(()))?;
        }
        Ended::Later {
            after,
            attempt,
            fault,
            behind,
        } => {
            let until = now.plus(*after);
            let deferred = (*behind == Behind::Pass).then(|| until.column());
            let place = place.number();
            batch.execute(
                PUT_OFF,
                params![place, line.as_bytes(), attempt, fault, deferred],
            )?;
            if *behind == Behind::Wait {
                line::hold_back(batch, line, until)?;
                return Ok(Goes::NoFurther);
            }
        }
        Ended::Dead { attempt, fault } => {
            let died = batch.row(
                DIE,
                named_params! {
                    ":place": place.number(),
                    ":line": line.as_bytes(),
                    ":attempts": attempt,
                    ":fault": fault,
                    ":now": now.column(),
                },
                |row| row.get::<_, Vec<u8>>(0),
            )?;
            if let Some(key) = died {
                batch.row(REMOVE, params![place.number(), line.as_bytes()], |_| Ok(()))?;
                line::set_stage(batch, &key, Stage::Dead)?;
            }
        }
    }
    Ok(Goes::On)
}

const REMOVE: &str = "
DELETE FROM idempotency_inbox_messages WHERE place = ?1 AND line = ?2 RETURNING key";

const STAY: &str = "
UPDATE idempotency_inbox_keys AS known SET stage = 'done', raw = message.raw
FROM idempotency_inbox_messages AS message
WHERE message.place = ?1 AND message.line = ?2 AND known.key = message.key";

const PUT_OFF: &str = "
UPDATE idempotency_inbox_messages SET failures = ?3, fault = ?4, due_at = ?5
WHERE place = ?1 AND line = ?2";

const DIE: &str = "
INSERT INTO idempotency_inbox_dead (line, key, attempts, received_at, died_at, fault, raw)
SELECT line, key, :attempts, received_at, :now, :fault, raw
FROM idempotency_inbox_messages WHERE place = :place AND line = :line
RETURNING key";
