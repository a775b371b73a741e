//! Makes the tables.

use deadpool_postgres::ClientWrapper;
use tokio_postgres::SimpleQueryMessage;
use tokio_postgres::error::SqlState;

use crate::error::Error;
use crate::store::postgres::database::Database;
use crate::store::postgres::fault::{Cure, Fault};
use crate::store::postgres::table::Table;

/// Version 1 of the tables, for the default name.
const SCHEMA: &str = concat!(
    include_str!("schema_1.sql"),
    "\n",
    include_str!("inbox_1.sql")
);

/// The version that this code works with.
const VERSION: i32 = 1;

/// How often making the tables is tried while other processes make them, too.
const TRIES: usize = 20;

/// The SQL of the tables and functions, for this table's name.
pub(super) fn schema(table: &Table) -> String {
    format!(
        "{}\n-- The same again for the outbox.\n\n{}",
        table.render(SCHEMA),
        table.outbox().render(SCHEMA)
    )
}

/// Brings the tables to [`VERSION`], whoever else does the same at the moment.
pub(super) async fn migrate(database: &Database, table: &Table) -> Result<(), Error> {
    let mut tries = 1;
    loop {
        let held = database.connection().await.map_err(|f| f.error)?;
        let Some(client) = held.client() else {
            return Err(Error::unavailable("there is no connection to the database"));
        };
        let fault = match attempt(client, table).await {
            Ok(()) => {
                held.give_back();
                return Ok(());
            }
            Err(fault) => fault,
        };
        // The transaction is open still: the connection goes.
        drop(held);
        if tries == TRIES || fault.cure == Cure::None {
            return Err(fault.error);
        }
        tries += 1;
    }
}

async fn attempt(client: &ClientWrapper, table: &Table) -> Result<(), Fault> {
    if version(client, table).await? >= VERSION {
        return Ok(());
    }
    check_encoding(client).await?;
    run(client, "BEGIN").await?;
    make_schema(client, table).await?;
    let first = "CREATE TABLE IF NOT EXISTS idempotency_version (
            version integer PRIMARY KEY,
            applied_at timestamptz NOT NULL DEFAULT now()
        );
        LOCK TABLE idempotency_version IN EXCLUSIVE MODE";
    run(client, &table.render(first)).await?;
    if version(client, table).await? < VERSION {
        run(client, &schema(table)).await?;
    }
    run(client, "COMMIT").await
}

async fn run(client: &ClientWrapper, sql: &str) -> Result<(), Fault> {
    client.batch_execute(sql).await.map_err(judge)
}

/// The version of the tables that are there; 0 if there are none.
async fn version(client: &ClientWrapper, table: &Table) -> Result<i32, Fault> {
    let name = table.object("_version");
    if first_text(client, &format!("SELECT to_regclass('{name}')"))
        .await?
        .is_none()
    {
        return Ok(0);
    }
    let newest = format!("SELECT coalesce(max(version), 0) FROM {name}");
    let found = first_text(client, &newest).await?.unwrap_or_default();
    found.parse().map_err(Fault::corrupt)
}

/// The texts are kept as they are, whatever their language.
async fn check_encoding(client: &ClientWrapper) -> Result<(), Fault> {
    let encoding = first_text(client, "SHOW server_encoding").await?;
    if encoding.as_deref() == Some("UTF8") {
        return Ok(());
    }
    Err(Fault {
        cure: Cure::None,
        error: Error::misconfigured("the database's encoding must be UTF8"),
    })
}

/// Not `IF NOT EXISTS`, which asks for the right to make schemas even where there is nothing to
/// make.
async fn make_schema(client: &ClientWrapper, table: &Table) -> Result<(), Fault> {
    let Some(schema) = table.schema() else {
        return Ok(());
    };
    let found = first_text(client, &format!("SELECT to_regnamespace('\"{schema}\"')")).await?;
    match found {
        Some(_) => Ok(()),
        None => run(client, &format!("CREATE SCHEMA \"{schema}\"")).await,
    }
}

/// The first value of the first row, by the simple protocol: no pooler gets in its way.
async fn first_text(client: &ClientWrapper, sql: &str) -> Result<Option<String>, Fault> {
    let messages = client.simple_query(sql).await.map_err(judge)?;
    for message in &messages {
        if let SimpleQueryMessage::Row(row) = message {
            return Ok(row.get(0).map(str::to_owned));
        }
    }
    Ok(None)
}

/// Two processes that make the same thing at once meet in the server's own catalogues.
fn judge(error: tokio_postgres::Error) -> Fault {
    let met = error.code().is_some_and(|state| {
        [
            SqlState::UNIQUE_VIOLATION,
            SqlState::DUPLICATE_TABLE,
            SqlState::DUPLICATE_SCHEMA,
            SqlState::DUPLICATE_OBJECT,
            SqlState::DUPLICATE_FUNCTION,
            SqlState::INTERNAL_ERROR,
        ]
        .contains(state)
    });
    let fault = Fault::of_statement(error);
    Fault {
        cure: if met { Cure::Repeat } else { fault.cure },
        ..fault
    }
}
