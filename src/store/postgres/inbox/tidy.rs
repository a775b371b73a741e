//! Keeps the tables that are written and emptied all the time small.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::store::postgres::database::Database;
use crate::store::postgres::fault::Fault;
use crate::store::postgres::table::{Statement, Table};

/// Vacuums messages and lines while much comes and goes. The server's own autovacuum looks at a
/// table once a minute by default: by then a busy inbox has grown by gigabytes.
pub(crate) struct Tidy {
    tables: [Chore; 2],
    reports: AtomicU64,
    is_refused: AtomicBool,
}

/// One table's statements.
struct Chore {
    name: String,
    look: Statement,
    vacuum: Statement,
}

/// With fewer reports between two looks autovacuum is enough.
const MANY: u64 = 500;

impl Tidy {
    pub(crate) fn of(table: &Table) -> Self {
        let chore = |suffix: &str| {
            let name = table.object(suffix);
            let statement = |text: String| Statement {
                text,
                types: &[],
                often: false,
            };
            Chore {
                look: statement(LOOK.replace("{table}", &name)),
                // Truncating would lock out everybody; so would waiting for others' vacuum.
                vacuum: statement(format!(
                    "VACUUM (TRUNCATE false, SKIP_LOCKED, PARALLEL 0) {name}"
                )),
                name,
            }
        };
        Self {
            tables: [chore("_message"), chore("_line")],
            reports: AtomicU64::new(0),
            is_refused: AtomicBool::new(false),
        }
    }

    /// Notes so many reports.
    pub(crate) fn note(&self, reports: usize) {
        let reports = u64::try_from(reports).unwrap_or_default();
        self.reports.fetch_add(reports, Ordering::Relaxed);
    }

    /// Vacuums what needs it, unless another process has just done so.
    pub(super) async fn tidy(&self, database: &Database) -> Result<(), Fault> {
        if self.reports.swap(0, Ordering::Relaxed) < MANY {
            return Ok(());
        }
        for chore in &self.tables {
            let rows = database.query(None, &chore.look, &[]).await?;
            let Some(row) = rows.first() else {
                continue;
            };
            let (is_allowed, is_needed) = (
                row.try_get(0).map_err(Fault::corrupt)?,
                row.try_get(1).map_err(Fault::corrupt)?,
            );
            match (is_allowed, is_needed) {
                (true, true) => drop(database.query(None, &chore.vacuum, &[]).await?),
                (true, false) => {}
                (false, _) => self.warn(&chore.name),
            }
        }
        Ok(())
    }

    fn warn(&self, table: &str) {
        if !self.is_refused.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                table,
                "the store may not vacuum its table, since its user does not own it: a busy inbox \
                 is as large as autovacuum lets it be"
            );
        }
    }
}

/// Whether the user may vacuum the table, and whether it needs it.
const LOOK: &str = "SELECT pg_has_role(c.relowner, 'USAGE'), \
    pg_stat_get_dead_tuples(c.oid) > 1000 AND coalesce( \
        pg_stat_get_last_vacuum_time(c.oid) < clock_timestamp() - interval '4 s', true) \
    FROM pg_class c WHERE c.oid = to_regclass('{table}')";
