//! The tables, made and brought up to date.

use rusqlite::{Connection, TransactionBehavior};

use crate::error::Error;
use crate::store::sqlite::fault;
use crate::store::sqlite::tables::Tables;

/// Makes or updates the tables. Several processes may do so at once: the first that gets the
/// file's write lock does it, the others find it done.
///
/// # Errors
/// If the file was written by a later version, or belongs to something else.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), Error> {
    if version(connection)? == VERSION {
        return check(connection);
    }
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(fault::of_open)?;
    match version(&transaction)? {
        VERSION => {}
        0 => {
            let outbox = INBOX_1.replace(Tables::Inbox.prefix(), Tables::Outbox.prefix());
            for sql in [VERSION_1, INBOX_1, &outbox] {
                transaction.execute_batch(sql).map_err(fault::of_open)?;
            }
            transaction
                .pragma_update(None, "user_version", VERSION)
                .map_err(fault::of_open)?;
        }
        other => return Err(of_other(&transaction, other)),
    }
    transaction.commit().map_err(fault::of_open)
}

/// Whether the file with our version has our tables.
fn check(connection: &Connection) -> Result<(), Error> {
    if is_ours(connection)? {
        Ok(())
    } else {
        Err(of_other(connection, VERSION))
    }
}

fn of_other(connection: &Connection, version: i64) -> Error {
    match is_ours(connection) {
        Ok(true) => Error::misconfigured(format!(
            "the database file was written by a later version of the store: \
             its version is {version}, this one knows {VERSION}"
        )),
        Ok(false) => Error::misconfigured(format!(
            "the database file belongs to another application: \
             it has user_version {version} and none of the store's tables"
        )),
        Err(error) => error,
    }
}

fn is_ours(connection: &Connection) -> Result<bool, Error> {
    connection
        .query_row(IS_OURS, [], |row| row.get(0))
        .map_err(fault::of_open)
}

fn version(connection: &Connection) -> Result<i64, Error> {
    connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(fault::of_open)
}

const VERSION: i64 = 1;

const VERSION_1: &str = include_str!("schema_1.sql");

const INBOX_1: &str = include_str!("inbox_1.sql");

const IS_OURS: &str =
    "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'idempotency_sequence')";
