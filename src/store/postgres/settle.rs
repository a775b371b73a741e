//! The ends of runs: records and releases.

use std::collections::HashSet;
use std::sync::Arc;

use tokio_postgres::types::ToSql;

use crate::error::Error;
use crate::record::Keep;
use crate::store::lease::{End, Settled, Settlement};
use crate::store::postgres::database::{Database, Parameters};
use crate::store::postgres::fault::Fault;
use crate::store::postgres::held::Held;
use crate::store::postgres::id::Id;
use crate::store::postgres::lanes::{Answers, Job};
use crate::store::postgres::pace::Effect;
use crate::store::postgres::table::{Statement, Statements};
use crate::store::postgres::time;

/// One call's settlements, ready to be sent.
pub(super) struct SettleCall {
    ends: Vec<Ended>,
}

pub(super) struct Ended {
    id: Id,
    token: i64,
    record: Option<Kept>,
}

pub(super) struct Kept {
    bytes: Vec<u8>,
    keep: i64,
    lively: bool,
}

impl SettleCall {
    /// Writes the records, at the caller's expense and not at that of the calls beside it.
    pub(super) fn new(settlements: &[Settlement]) -> Result<Self, Error> {
        let ends = settlements
            .iter()
            .map(Ended::of)
            .collect::<Result<_, _>>()?;
        Ok(Self { ends })
    }
}

impl Ended {
    fn of(settlement: &Settlement) -> Result<Self, Error> {
        let record = match &settlement.end {
            End::Record { record, keep } => {
                let (time, lively) = match keep {
                    Keep::For(time) => (*time, false),
                    Keep::Conversation { idle } => (*idle, true),
                };
                Some(Kept {
                    bytes: record.to_bytes()?,
                    keep: time::to_server(time),
                    lively,
                })
            }
            End::Release => None,
        };
        Ok(Self {
            id: Id::of_key(&settlement.hold.key),
            token: settlement.hold.token.number(),
            record,
        })
    }
}

/// Serves settlements.
pub(super) struct SettleJob(pub(super) Arc<Database>);

/// So many bytes of records take as much of a statement's room as one more row.
const BYTES_PER_ROW: usize = 16 * 1024;

impl Job for SettleJob {
    type Call = SettleCall;
    type Answer = Vec<Settled>;

    fn weight(call: &SettleCall) -> usize {
        let of_end = |end: &Ended| {
            1 + end
                .record
                .as_ref()
                .map_or(0, |kept| kept.bytes.len() / BYTES_PER_ROW)
        };
        call.ends.iter().map(of_end).sum()
    }

    fn database(&self) -> &Database {
        &self.0
    }

    async fn serve(
        &self,
        held: Held,
        calls: &[SettleCall],
    ) -> Result<(Answers<Self>, Effect), Fault> {
        if let [SettleCall { ends }] = calls
            && let [only] = ends.as_slice()
            && let Some(kept) = &only.record
        {
            let settled = self.end(held, only, kept).await?;
            return Ok((vec![Ok(vec![settled])], Effect::Written));
        }
        let columns = Columns::of(calls);
        let rows = self
            .0
            .query(
                Some(held),
                &self.0.statements.settle,
                &[
                    &columns.keys,
                    &columns.tokens,
                    &columns.records,
                    &columns.keeps,
                    &columns.lively,
                    &columns.released,
                    &columns.released_tokens,
                ],
            )
            .await?;
        let mut superseded = HashSet::with_capacity(rows.len());
        for row in &rows {
            let key: Id = row.try_get(0).map_err(Fault::corrupt)?;
            let token: i64 = row.try_get(1).map_err(Fault::corrupt)?;
            let recorded: bool = row.try_get(2).map_err(Fault::corrupt)?;
            superseded.insert((key, token, recorded));
        }
        let settled = |end: &Ended| {
            if superseded.contains(&(end.id, end.token, end.record.is_some())) {
                Settled::Superseded
            } else {
                Settled::Applied
            }
        };
        let answer = |call: &SettleCall| Ok(call.ends.iter().map(settled).collect());
        Ok((calls.iter().map(answer).collect(), Effect::Written))
    }
}

impl SettleJob {
    /// One run that gets a record.
    async fn end(&self, held: Held, end: &Ended, kept: &Kept) -> Result<Settled, Fault> {
        let parameters: &Parameters<'_> =
            &[&end.id, &end.token, &kept.bytes, &kept.keep, &kept.lively];
        let statement = &self.0.statements.end;
        let rows = self.0.query(Some(held), statement, parameters).await?;
        let applied = match rows.first() {
            Some(row) => row.try_get(0).map_err(Fault::corrupt)?,
            None => false,
        };
        Ok(if applied {
            Settled::Applied
        } else {
            Settled::Superseded
        })
    }
}

/// The settlements as arrays, in the order in which rows are locked. What holds nothing is not sent.
pub(super) struct Columns<'a> {
    keys: Option<Vec<Id>>,
    tokens: Option<Vec<i64>>,
    records: Option<Vec<&'a [u8]>>,
    keeps: Option<Vec<i64>>,
    lively: Option<Vec<bool>>,
    released: Option<Vec<Id>>,
    released_tokens: Option<Vec<i64>>,
}

impl<'a> Columns<'a> {
    fn of(calls: &'a [SettleCall]) -> Self {
        let place = |end: &&Ended| (end.id, end.token, end.record.is_some());
        let mut ends: Vec<&Ended> = calls.iter().flat_map(|call| &call.ends).collect();
        ends.sort_unstable_by_key(place);
        // Once is enough, and a second release would find nothing.
        ends.dedup_by_key(|end| place(end));
        let with_record = |end: &&'a Ended| Some((*end, end.record.as_ref()?));
        let kept: Vec<(&Ended, &Kept)> = ends.iter().filter_map(with_record).collect();
        let released: Vec<&Ended> = ends.into_iter().filter(|e| e.record.is_none()).collect();
        let is_lively = kept.iter().any(|(_, kept)| kept.lively);
        Self {
            keys: column(&kept, |(end, _)| end.id),
            tokens: column(&kept, |(end, _)| end.token),
            records: column(&kept, |(_, kept)| &kept.bytes[..]),
            keeps: column(&kept, |(_, kept)| kept.keep),
            lively: column(&kept, |(_, kept)| kept.lively).filter(|_| is_lively),
            released: column(&released, |end| end.id),
            released_tokens: column(&released, |end| end.token),
        }
    }
}

/// The records of runs that write in a transaction of their own.
pub(super) enum Conclusion<'a> {
    One(&'a Ended, &'a Kept),
    /// In the order in which rows are locked.
    Several(Columns<'a>),
}

/// What is left to do for runs that write in a transaction of their own. Every end is a record.
pub(super) fn conclusion(call: &SettleCall) -> Conclusion<'_> {
    if let [only] = call.ends.as_slice()
        && let Some(kept) = &only.record
    {
        return Conclusion::One(only, kept);
    }
    Conclusion::Several(Columns::of(std::slice::from_ref(call)))
}

impl Conclusion<'_> {
    /// The function to call.
    pub(super) fn statement<'b>(&self, statements: &'b Statements) -> &'b Statement {
        match self {
            Self::One(..) => &statements.conclude,
            Self::Several(_) => &statements.conclude_all,
        }
    }

    /// Its parameters, in their order.
    pub(super) fn with_run<'b>(&'b self, run: &'b String) -> [&'b (dyn ToSql + Sync); 6] {
        match self {
            Self::One(end, kept) => [
                &end.id,
                &end.token,
                &kept.bytes,
                &kept.keep,
                &kept.lively,
                run,
            ],
            Self::Several(Columns {
                keys,
                tokens,
                records,
                keeps,
                lively,
                ..
            }) => [keys, tokens, records, keeps, lively, run],
        }
    }
}

fn column<R: Copy, T>(rows: &[R], value: impl Fn(R) -> T) -> Option<Vec<T>> {
    (!rows.is_empty()).then(|| rows.iter().copied().map(value).collect())
}
