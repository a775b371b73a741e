//! What is asked seldom: by operators, for whole conversations, and by the sweeper.

use bytes::Bytes;
use tokio_postgres::types::Type;

use crate::store::postgres::conversation::number;
use crate::store::postgres::database::Database;
use crate::store::postgres::fault::Fault;
use crate::store::postgres::id::Id;
use crate::store::postgres::inbox::read;
use crate::store::postgres::table::{Statement, Table};
use crate::store::postgres::time;
use crate::store::queue::backlog::{Backlog, DeadLetter, Death};
use crate::store::queue::turn::Waiting;

/// The statements of these operations, which are sent alone.
pub(crate) struct Chores {
    kept: Statement,
    backlog: Statement,
    waiting: Statement,
    dead: Statement,
    redrive: Statement,
    bury: Statement,
    drop_line: Statement,
    close: Statement,
    sweep: Statement,
}

/// What a sweep did.
pub(crate) struct Swept {
    /// Rows that went.
    pub(crate) swept: u64,
    /// Rows that were looked at.
    pub(crate) looked: u64,
}

impl Chores {
    pub(crate) fn of(table: &Table) -> Self {
        let statement = |text: &str, types| Statement {
            text: table.render(text),
            types,
            often: false,
        };
        Self {
            kept: statement(KEPT, &[Type::UUID]),
            backlog: statement(BACKLOG, &[]),
            waiting: statement(WAITING, &[Type::INT8]),
            dead: statement(DEAD, &[Type::INT8, Type::INT8]),
            redrive: statement("SELECT idempotency_redrive($1)", &[Type::INT8_ARRAY]),
            bury: statement("SELECT idempotency_bury($1)", &[Type::INT8_ARRAY]),
            drop_line: statement("SELECT idempotency_drop($1)", &[Type::UUID]),
            close: statement(CLOSE, &[Type::UUID]),
            sweep: statement("SELECT * FROM idempotency_unsee($1)", &[Type::INT8]),
        }
    }

    pub(super) async fn kept(&self, database: &Database, key: Id) -> Result<Option<Bytes>, Fault> {
        let rows = database.query(None, &self.kept, &[&key]).await?;
        let raw = rows.first().map(|row| row.try_get::<_, Vec<u8>>(0));
        let raw = raw.transpose().map_err(Fault::corrupt)?;
        Ok(raw.map(Bytes::from))
    }

    pub(super) async fn backlog(&self, database: &Database) -> Result<Backlog, Fault> {
        let rows = database.query(None, &self.backlog, &[]).await?;
        let Some(row) = rows.first() else {
            return Ok(Backlog::default());
        };
        let count = |at: usize| {
            let count: i64 = row.try_get(at).map_err(Fault::corrupt)?;
            Ok(u64::try_from(count).unwrap_or_default())
        };
        let oldest: Option<i64> = row.try_get(3).map_err(Fault::corrupt)?;
        let oldest = oldest.map(|age| time::from_server(Some(age)));
        Ok(Backlog::new(count(0)?, count(1)?, count(2)?, oldest))
    }

    pub(super) async fn waiting(
        &self,
        database: &Database,
        limit: usize,
    ) -> Result<Vec<Waiting>, Fault> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = database.query(None, &self.waiting, &[&limit]).await?;
        let messages = rows.iter().map(|row| read::message(row, 0));
        messages.filter_map(Result::transpose).collect()
    }

    pub(super) async fn dead(
        &self,
        database: &Database,
        after: Option<Death>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, Fault> {
        let after = after.map_or(i64::MIN, Death::number);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = database.query(None, &self.dead, &[&after, &limit]).await?;
        let mut letters = Vec::with_capacity(rows.len());
        for row in &rows {
            let death = Death::new(row.try_get(0).map_err(Fault::corrupt)?);
            let died_at = row.try_get(1).map_err(Fault::corrupt)?;
            if let Some(message) = read::message(row, 2)? {
                letters.push(DeadLetter::new(death, message, died_at));
            }
        }
        Ok(letters)
    }

    pub(super) async fn redrive(
        &self,
        database: &Database,
        deaths: &[Death],
    ) -> Result<u64, Fault> {
        number(database, &self.redrive, &[&numbers(deaths)]).await
    }

    pub(super) async fn bury(&self, database: &Database, deaths: &[Death]) -> Result<u64, Fault> {
        number(database, &self.bury, &[&numbers(deaths)]).await
    }

    pub(crate) async fn drop_line(&self, database: &Database, line: Id) -> Result<u64, Fault> {
        number(database, &self.drop_line, &[&line]).await
    }

    pub(super) async fn close(&self, database: &Database, line: Id) -> Result<(), Fault> {
        number(database, &self.close, &[&line]).await?;
        Ok(())
    }

    pub(super) async fn sweep(&self, database: &Database, limit: i64) -> Result<Swept, Fault> {
        let rows = database.query(None, &self.sweep, &[&limit]).await?;
        let count = |at: usize| match rows.first() {
            Some(row) => {
                let count: i64 = row.try_get(at).map_err(Fault::corrupt)?;
                Ok(u64::try_from(count).unwrap_or_default())
            }
            None => Ok(0),
        };
        Ok(Swept {
            swept: count(0)?,
            looked: count(1)?,
        })
    }
}

fn numbers(deaths: &[Death]) -> Vec<i64> {
    deaths.iter().map(|death| death.number()).collect()
}

const KEPT: &str = "SELECT raw FROM idempotency_kept WHERE key = $1";

const BACKLOG: &str = "SELECT (SELECT count(*) FROM idempotency_message), \
    (SELECT count(*) FROM idempotency_line l \
        WHERE EXISTS (SELECT FROM idempotency_message m WHERE m.line = l.line)), \
    (SELECT count(*) FROM idempotency_dead), \
    (SELECT (extract(epoch FROM clock_timestamp() - min(received_at)) * 1000000)::bigint \
        FROM idempotency_message)";

const WAITING: &str = "SELECT place, failures + 1, received_at, fault, raw \
    FROM idempotency_message ORDER BY place LIMIT $1";

const DEAD: &str = "SELECT death, died_at, 0::bigint, attempts, received_at, fault, raw \
    FROM idempotency_dead WHERE death > $1 ORDER BY death LIMIT $2";

const CLOSE: &str = "UPDATE idempotency_life SET \
    expires = greatest(expires, clock_timestamp() + idle * interval '1 ms') \
    WHERE line = $1 RETURNING 0::bigint";
