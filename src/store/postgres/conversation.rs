//! What concerns whole conversations, and sweeping.

use tokio_postgres::types::Type;

use crate::store::postgres::database::{Database, Parameters};
use crate::store::postgres::fault::Fault;
use crate::store::postgres::id::Id;
use crate::store::postgres::table::{Statement, Table};

/// The statements of these operations, which are sent alone.
pub(super) struct Chores {
    forget: Statement,
    count: Statement,
    close: Statement,
    sweep: Statement,
}

/// How many rows are marked in one transaction: a run that ends meanwhile waits for it.
const STEP: i64 = 1000;

impl Chores {
    pub(super) fn of(table: &Table) -> Self {
        let statement = |text: &str, types| Statement {
            text: table.render(text),
            types,
            often: false,
        };
        Self {
            forget: statement(
                "SELECT idempotency_forget($1, $2)",
                &[Type::UUID, Type::INT8],
            ),
            count: statement(
                "SELECT count(*) FROM idempotency t \
                 LEFT JOIN idempotency_conversation c ON c.key = t.conversation_key \
                 WHERE t.conversation_key = $1 AND (t.state <> 'done' \
                 OR t.expires > clock_timestamp() \
                 OR greatest(c.heard_at, t.done_at) + t.idle * interval '1 ms' > clock_timestamp())",
                &[Type::UUID],
            ),
            close: statement(
                "UPDATE idempotency_conversation SET heard_at = clock_timestamp() \
                 WHERE key = $1 RETURNING 0::bigint",
                &[Type::UUID],
            ),
            sweep: statement("SELECT idempotency_sweep($1)", &[Type::INT8]),
        }
    }

    /// Marks the rows of a conversation step by step, and counts them.
    pub(super) async fn forget(&self, database: &Database, conversation: Id) -> Result<u64, Fault> {
        loop {
            let marked = number(database, &self.forget, &[&conversation, &STEP]).await?;
            if marked < u64::try_from(STEP).unwrap_or(u64::MAX) {
                return number(database, &self.count, &[&conversation]).await;
            }
        }
    }

    pub(super) async fn close(&self, database: &Database, conversation: Id) -> Result<(), Fault> {
        number(database, &self.close, &[&conversation]).await?;
        Ok(())
    }

    pub(super) async fn sweep(&self, database: &Database, limit: i64) -> Result<u64, Fault> {
        number(database, &self.sweep, &[&limit]).await
    }
}

/// The number that a statement answers; zero if it answers nothing.
pub(super) async fn number(
    database: &Database,
    statement: &Statement,
    parameters: &Parameters<'_>,
) -> Result<u64, Fault> {
    let rows = database.query(None, statement, parameters).await?;
    let Some(row) = rows.first() else {
        return Ok(0);
    };
    let number: i64 = row.try_get(0).map_err(Fault::corrupt)?;
    Ok(u64::try_from(number).unwrap_or_default())
}
