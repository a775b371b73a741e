//! Turns: taken and renewed.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Row;

use crate::store::lease::{Standing, Token};
use crate::store::postgres::database::Database;
use crate::store::postgres::fault::Fault;
use crate::store::postgres::held::Held;
use crate::store::postgres::id::Id;
use crate::store::postgres::inbox::read;
use crate::store::postgres::lanes::{Answers, Job};
use crate::store::postgres::pace::Effect;
use crate::store::postgres::time;
use crate::store::queue::turn::{Turn, TurnHold};

/// How many bytes of messages a line gives at once, beside its first message.
pub(super) const ROOM: i64 = 1 << 20;

/// Takes turns that are due.
pub(super) async fn take(
    database: &Database,
    (lines, messages): (usize, usize),
    lease: Duration,
) -> Result<Vec<Turn>, Fault> {
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let (lines, messages, lease) = (count(lines), count(messages), time::to_server(lease));
    let statement = &database.statements.turn;
    let rows = database
        .query(None, statement, &[&lines, &messages, &lease, &ROOM])
        .await?;
    let mut turns: Vec<Turn> = Vec::new();
    for row in &rows {
        let hold = hold(row)?;
        if turns.last().is_none_or(|turn| turn.hold != hold) {
            let overdue = time::from_server(row.try_get(2).map_err(Fault::corrupt)?);
            turns.push(Turn::new(hold, overdue, Vec::new()));
        }
        if let (Some(turn), Some(message)) = (turns.last_mut(), read::message(row, 3)?) {
            turn.messages.push(message);
        }
    }
    Ok(turns)
}

/// The turn that a row's first two columns name.
fn hold(row: &Row) -> Result<TurnHold, Fault> {
    let line: Id = row.try_get(0).map_err(Fault::corrupt)?;
    let token: i64 = row.try_get(1).map_err(Fault::corrupt)?;
    Ok(TurnHold::new(line.line(), Token::new(token)))
}

/// One call's turns.
pub(super) struct RenewCall {
    holds: Vec<(Id, i64)>,
    lease: i64,
}

impl RenewCall {
    pub(super) fn new(holds: &[TurnHold], lease: Duration) -> Self {
        let held = |hold: &TurnHold| (Id::of_line(hold.line), hold.token.number());
        Self {
            holds: holds.iter().map(held).collect(),
            lease: time::to_server(lease),
        }
    }
}

/// Serves renewals.
pub(super) struct RenewJob(pub(super) Arc<Database>);

impl Job for RenewJob {
    type Call = RenewCall;
    type Answer = Vec<Standing>;

    fn weight(call: &RenewCall) -> usize {
        call.holds.len()
    }

    fn database(&self) -> &Database {
        &self.0
    }

    async fn serve(
        &self,
        held: Held,
        calls: &[RenewCall],
    ) -> Result<(Answers<Self>, Effect), Fault> {
        let of_call = |call: &RenewCall| {
            let lease = call.lease;
            let held = move |(line, token): &(Id, i64)| (*line, *token, lease);
            call.holds.iter().map(held).collect::<Vec<_>>()
        };
        let mut all: Vec<(Id, i64, i64)> = calls.iter().flat_map(of_call).collect();
        all.sort_unstable();
        // Of several calls for one turn the longest lease counts.
        all.reverse();
        all.dedup_by_key(|(line, token, _)| (*line, *token));
        all.reverse();
        let lines: Vec<Id> = all.iter().map(|(line, ..)| *line).collect();
        let tokens: Vec<i64> = all.iter().map(|(_, token, _)| *token).collect();
        let leases: Vec<i64> = all.iter().map(|(.., lease)| *lease).collect();
        let (numbers, texts, flags) = (
            Option::<Vec<i64>>::None,
            Option::<Vec<String>>::None,
            Option::<Vec<bool>>::None,
        );
        let rows = self
            .0
            .query(
                Some(held),
                &self.0.statements.report,
                &[
                    &lines, &tokens, &leases, &numbers, &texts, &numbers, &texts, &numbers, &flags,
                    &numbers, &ROOM,
                ],
            )
            .await?;
        let mut lost = HashSet::with_capacity(rows.len());
        for row in &rows {
            lost.insert(hold(row)?);
        }
        let standing = |(line, token): &(Id, i64)| {
            if lost.contains(&TurnHold::new(line.line(), Token::new(*token))) {
                Standing::Lost
            } else {
                Standing::Renewed
            }
        };
        let answer = |call: &RenewCall| Ok(call.holds.iter().map(standing).collect());
        Ok((calls.iter().map(answer).collect(), Effect::Written))
    }
}
