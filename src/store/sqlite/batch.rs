//! The transaction that several calls share.

use std::cell::Cell;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, Params, Row};

use crate::error::Error;
use crate::store::lease::Token;
use crate::store::sqlite::fault;
use crate::store::sqlite::tables::Tables;

/// The writer's transaction while it is open.
///
/// Each call works [apart](Self::apart): behind a savepoint, so that its failure undoes what it
/// wrote and nothing else.
pub(super) struct Batch<'c> {
    connection: &'c Connection,
    began: Instant,
    tokens: Option<Tokens>,
    tables: Cell<Tables>,
}

/// The store-wide sequence, read when the first call of a transaction needs it and written back
/// before the commit.
struct Tokens {
    saved: i64,
    last: i64,
}

impl<'c> Batch<'c> {
    /// Takes the write lock of the file; waits for it up to the busy limit.
    pub(super) fn begin(connection: &'c Connection) -> rusqlite::Result<Self> {
        run(connection, "BEGIN IMMEDIATE")?;
        Ok(Self {
            connection,
            began: Instant::now(),
            tokens: None,
            tables: Cell::default(),
        })
    }

    /// Writes everything to the disk.
    pub(super) fn commit(self) -> rusqlite::Result<()> {
        if let Some(tokens) = &self.tokens
            && tokens.last != tokens.saved
        {
            self.connection
                .prepare_cached(SAVE_TOKEN)?
                .execute([tokens.last])?;
        }
        run(self.connection, "COMMIT")
    }

    /// Whether SQLite has rolled everything back by itself, as it does when the disk fails or is
    /// full.
    pub(super) fn is_lost(&self) -> bool {
        self.connection.is_autocommit()
    }

    /// Performs one call's work; after an error the work is undone and the others' is not.
    pub(super) fn apart<A>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<A, Error>,
    ) -> Result<A, Error> {
        self.execute("SAVEPOINT call", [])?;
        let answer = work(self);
        if answer.is_err() && !self.is_lost() {
            self.execute("ROLLBACK TO call", [])?;
        }
        if !self.is_lost() {
            self.execute("RELEASE call", [])?;
        }
        answer
    }

    /// The token that the next claim is offered. It stays the same until it is [spent].
    ///
    /// [spent]: Self::spend
    pub(super) fn next_token(&mut self) -> Result<Token, Error> {
        if self.tokens.is_none() {
            let last = self.row(LAST_TOKEN, [], |row| row.get(0))?;
            let last = last.ok_or_else(|| Error::corrupt("the sequence of tokens has no row"))?;
            self.tokens = Some(Tokens { saved: last, last });
        }
        let last = self.tokens.as_ref().map_or(i64::MAX, |tokens| tokens.last);
        last.checked_add(1)
            .map(Token::new)
            .ok_or_else(|| Error::corrupt("the sequence of tokens has come to its end"))
    }

    /// The token was given, and is never given again: not even if the call fails later.
    pub(super) fn spend(&mut self, token: Token) {
        if let Some(tokens) = &mut self.tokens {
            tokens.last = token.number();
        }
    }

    /// How many tokens were given, and so about how many rows came.
    pub(super) fn granted(&self) -> u64 {
        let given = self.tokens.as_ref().map_or(0, |t| t.last - t.saved);
        u64::try_from(given).unwrap_or(0)
    }

    /// How long the transaction has been open.
    pub(super) fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// What the statements of a queue are about from here on; gives what they were about before.
    pub(super) fn turn_to(&self, tables: Tables) -> Tables {
        self.tables.replace(tables)
    }

    /// The connection, for statements of the application.
    pub(super) fn connection(&self) -> &Connection {
        self.connection
    }

    /// Runs a statement and gives the number of rows that it changed.
    pub(super) fn execute(&self, sql: &str, params: impl Params) -> Result<usize, Error> {
        let sql = self.tables.get().named(sql);
        let run = || self.connection.prepare_cached(&sql)?.execute(params);
        run().map_err(fault::of_call)
    }

    /// The first row of a statement, if it has one.
    pub(super) fn row<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Error> {
        let sql = self.tables.get().named(sql);
        let run = || {
            let mut statement = self.connection.prepare_cached(&sql)?;
            statement.query_row(params, read).optional()
        };
        run().map_err(fault::of_call)
    }

    /// All rows of a statement.
    pub(super) fn rows<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Error> {
        let sql = self.tables.get().named(sql);
        let run = || -> rusqlite::Result<Vec<T>> {
            let mut statement = self.connection.prepare_cached(&sql)?;
            statement.query_map(params, read)?.collect()
        };
        run().map_err(fault::of_call)
    }
}

impl Drop for Batch<'_> {
    /// Leaves no transaction open, however the work ended.
    fn drop(&mut self) {
        if !self.is_lost()
            && let Err(error) = run(self.connection, "ROLLBACK")
        {
            tracing::error!(%error, "a transaction could not be rolled back");
        }
    }
}

fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}

const LAST_TOKEN: &str = "SELECT last FROM idempotency_sequence";

const SAVE_TOKEN: &str = "UPDATE idempotency_sequence SET last = ?1";
