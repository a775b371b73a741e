//! The ends of runs: records and releases.

use std::collections::HashSet;
use std::sync::Arc;

use crate::error::Error;
use crate::record::Keep;
use crate::store::contract::{End, Settled, Settlement};
use crate::store::postgres::database::Database;
use crate::store::postgres::fault::Fault;
use crate::store::postgres::held::Held;
use crate::store::postgres::id::Id;
use crate::store::postgres::lanes::{Answers, Job};
use crate::store::postgres::pace::Effect;
use crate::store::postgres::time;

/// One call's settlements, ready to be sent.
pub(super) struct SettleCall {
    ends: Vec<Ended>,
}

struct Ended {
    id: Id,
    token: i64,
    record: Option<Kept>,
}

struct Kept {
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
        let mut applied = HashSet::with_capacity(rows.len());
        for row in &rows {
            let key: Id = row.try_get(0).map_err(Fault::corrupt)?;
            let token: i64 = row.try_get(1).map_err(Fault::corrupt)?;
            let recorded: bool = row.try_get(2).map_err(Fault::corrupt)?;
            applied.insert((key, token, recorded));
        }
        let settled = |end: &Ended| {
            if applied.contains(&(end.id, end.token, end.record.is_some())) {
                Settled::Applied
            } else {
                Settled::Superseded
            }
        };
        let answer = |call: &SettleCall| Ok(call.ends.iter().map(settled).collect());
        Ok((calls.iter().map(answer).collect(), Effect::Written))
    }
}

/// The settlements as arrays, in the order in which rows are locked.
#[derive(Default)]
struct Columns<'a> {
    keys: Vec<Id>,
    tokens: Vec<i64>,
    records: Vec<&'a [u8]>,
    keeps: Vec<i64>,
    lively: Vec<bool>,
    released: Vec<Id>,
    released_tokens: Vec<i64>,
}

impl<'a> Columns<'a> {
    fn of(calls: &'a [SettleCall]) -> Self {
        let mut ends: Vec<&Ended> = calls.iter().flat_map(|call| &call.ends).collect();
        ends.sort_by_key(|end| end.id);
        let mut columns = Self::default();
        for end in ends {
            columns.push(end);
        }
        columns
    }

    fn push(&mut self, end: &'a Ended) {
        if let Some(kept) = &end.record {
            self.keys.push(end.id);
            self.tokens.push(end.token);
            self.records.push(&kept.bytes);
            self.keeps.push(kept.keep);
            self.lively.push(kept.lively);
        } else {
            self.released.push(end.id);
            self.released_tokens.push(end.token);
        }
    }
}
