//! Looks at keys. All that wait in this process look by one statement.

use std::collections::HashMap;
use std::sync::Arc;

use tokio_postgres::Row;

use crate::error::Error;
use crate::store::contract::Sight;
use crate::store::postgres::database::Database;
use crate::store::postgres::fault::Fault;
use crate::store::postgres::held::Held;
use crate::store::postgres::id::Id;
use crate::store::postgres::lanes::{Answers, Job};
use crate::store::postgres::pace::Effect;
use crate::store::postgres::stand;
use crate::store::postgres::time;

/// Serves looks.
pub(super) struct LookJob(pub(super) Arc<Database>);

impl Job for LookJob {
    type Call = Vec<Id>;
    type Answer = Vec<Sight>;

    fn weight(keys: &Vec<Id>) -> usize {
        keys.len()
    }

    fn database(&self) -> &Database {
        &self.0
    }

    async fn serve(&self, held: Held, calls: &[Vec<Id>]) -> Result<(Answers<Self>, Effect), Fault> {
        let mut keys: Vec<Id> = calls.iter().flatten().copied().collect();
        keys.sort_unstable();
        keys.dedup();
        let rows = self
            .0
            .query(Some(held), &self.0.statements.look, &[&keys])
            .await?;
        let mut seen = HashMap::with_capacity(rows.len());
        for row in &rows {
            let key: Id = row.try_get(0).map_err(Fault::corrupt)?;
            seen.insert(key, sight(row)?);
        }
        let sight = |key: &Id| match seen.get(key) {
            Some(Ok(sight)) => Ok(sight.clone()),
            Some(Err(error)) => {
                Err(Error::corrupt("the key's record cannot be read").because(Arc::clone(error)))
            }
            None => Ok(Sight::Absent),
        };
        let answer = |call: &Vec<Id>| call.iter().map(sight).collect();
        Ok((calls.iter().map(answer).collect(), Effect::Read))
    }
}

fn sight(row: &Row) -> Result<Result<Sight, Arc<Error>>, Fault> {
    let done: bool = row.try_get(1).map_err(Fault::corrupt)?;
    if done {
        let bytes = row.try_get(3).map_err(Fault::corrupt)?;
        return Ok(stand::record(bytes).map(Sight::Done).map_err(Arc::new));
    }
    let remaining = time::from_server(row.try_get(2).map_err(Fault::corrupt)?);
    Ok(Ok(Sight::Running { remaining }))
}
