//! Renewals of leases.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::store::lease::{Hold, Standing};
use crate::store::postgres::database::Database;
use crate::store::postgres::fault::Fault;
use crate::store::postgres::held::Held;
use crate::store::postgres::id::Id;
use crate::store::postgres::lanes::{Answers, Job};
use crate::store::postgres::pace::Effect;
use crate::store::postgres::time;

/// One call's leases.
pub(super) struct RenewCall {
    holds: Vec<(Id, i64)>,
    lease: i64,
}

impl RenewCall {
    pub(super) fn new(holds: &[Hold], lease: Duration) -> Self {
        let held = |hold: &Hold| (Id::of_key(&hold.key), hold.token.number());
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
            let held = move |(id, token): &(Id, i64)| (*id, *token, lease);
            call.holds.iter().map(held).collect::<Vec<_>>()
        };
        let mut all: Vec<(Id, i64, i64)> = calls.iter().flat_map(of_call).collect();
        all.sort_unstable();
        let keys: Vec<Id> = all.iter().map(|(id, ..)| *id).collect();
        let tokens: Vec<i64> = all.iter().map(|(_, token, _)| *token).collect();
        let leases: Vec<i64> = all.iter().map(|(.., lease)| *lease).collect();
        let rows = self
            .0
            .query(
                Some(held),
                &self.0.statements.renew,
                &[&keys, &tokens, &leases],
            )
            .await?;
        let mut renewed = HashSet::with_capacity(rows.len());
        for row in &rows {
            let key: Id = row.try_get(0).map_err(Fault::corrupt)?;
            let token: i64 = row.try_get(1).map_err(Fault::corrupt)?;
            renewed.insert((key, token));
        }
        let standing = |hold: &(Id, i64)| {
            if renewed.contains(hold) {
                Standing::Renewed
            } else {
                Standing::Lost
            }
        };
        let answer = |call: &RenewCall| Ok(call.holds.iter().map(standing).collect());
        Ok((calls.iter().map(answer).collect(), Effect::Written))
    }
}
