//! Statements on pooled connections.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use deadpool_postgres::{ClientWrapper, Pool};
use tokio::time::sleep;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::store::postgres::fault::{Cure, Fault};
use crate::store::postgres::held::Held;
use crate::store::postgres::options::Prepared;
use crate::store::postgres::table::{Statement, Statements};

/// The pool, and how statements are sent.
pub(super) struct Database {
    pool: Pool,
    named: AtomicBool,
    pub(super) statements: Statements,
}

/// The parameters of a statement.
pub(super) type Parameters<'a> = [&'a (dyn ToSql + Sync)];

/// How often a statement is sent, if its connection breaks. What the store sends may be applied
/// twice: claims carry a nonce, and what ends or extends a run carries its token.
const TRIES: usize = 3;

/// Before a statement that others were in the way of is sent again.
const PAUSE: Duration = Duration::from_millis(20);

impl Database {
    pub(super) fn new(pool: Pool, prepared: Prepared, statements: Statements) -> Self {
        Self {
            pool,
            named: AtomicBool::new(prepared == Prepared::PerConnection),
            statements,
        }
    }

    /// Runs one statement, which is a transaction of its own, and reads its rows.
    ///
    /// A connection that turns out to be broken, or to lead to a server that cannot write, is
    /// replaced and the statement is sent again.
    pub(super) async fn query(
        &self,
        mut held: Option<Held>,
        statement: &Statement,
        parameters: &Parameters<'_>,
    ) -> Result<Vec<Row>, Fault> {
        let began = Instant::now();
        let mut tries = 1;
        loop {
            let first = match held.take() {
                Some(held) => held,
                None => self.connection().await?,
            };
            let fault = match self.once(first, statement, parameters).await {
                Ok(rows) => return Ok(rows),
                Err(fault) => fault,
            };
            match fault.cure {
                Cure::Reconnect => self.distrust(began),
                Cure::Unprepared if self.named.load(Ordering::Relaxed) => {
                    tracing::warn!(
                        error = %fault.error,
                        "statements are sent as text from now on"
                    );
                    self.named.store(false, Ordering::Relaxed);
                }
                // Whoever was in the way gets on with it meanwhile.
                Cure::Repeat => sleep(PAUSE.mul_f64(rand::random_range(0.5..2.0))).await,
                Cure::Unprepared => {}
                Cure::Apart | Cure::None => return Err(fault),
            }
            if tries == TRIES {
                return Err(fault);
            }
            tries += 1;
        }
    }

    async fn once(
        &self,
        held: Held,
        statement: &Statement,
        parameters: &Parameters<'_>,
    ) -> Result<Vec<Row>, Fault> {
        let answer = match held.client() {
            Some(client) if self.is_prepared(statement) => {
                named(client, statement, parameters).await
            }
            Some(client) => unnamed(client, statement, parameters).await,
            None => Ok(Vec::new()),
        };
        let answer = answer.map_err(Fault::of_statement);
        match &answer {
            Ok(_) => held.give_back(),
            Err(fault) => match fault.cure {
                // The server has ended the statement and rolled it back.
                Cure::Repeat | Cure::Apart | Cure::None => held.give_back(),
                Cure::Reconnect | Cure::Unprepared => drop(held),
            },
        }
        answer
    }

    /// Sends one statement on a connection with a transaction open. Nothing is tried again.
    pub(super) async fn send(
        &self,
        client: &ClientWrapper,
        statement: &Statement,
        parameters: &Parameters<'_>,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        if self.is_prepared(statement) {
            named(client, statement, parameters).await
        } else {
            unnamed(client, statement, parameters).await
        }
    }

    /// Prepares a statement, so that it is sent at once and in the order of the calls later.
    pub(super) async fn prepare(
        &self,
        client: &ClientWrapper,
        statement: &Statement,
    ) -> Result<(), tokio_postgres::Error> {
        if self.is_prepared(statement) {
            let prepared = client.prepare_typed_cached(&statement.text, statement.types);
            prepared.await.map(drop)?;
        }
        Ok(())
    }

    fn is_prepared(&self, statement: &Statement) -> bool {
        statement.often && self.named.load(Ordering::Relaxed)
    }

    /// A connection from the pool.
    pub(super) async fn connection(&self) -> Result<Held, Fault> {
        let object = self.pool.get().await.map_err(Fault::of_connecting)?;
        Ok(Held::new(object))
    }

    /// Closes the idle connections that were last used before `moment`: where one broke, those
    /// that were made to the same server at the same time are no better.
    pub(super) fn distrust(&self, moment: Instant) {
        let recent = moment.elapsed();
        self.pool.retain(|_, metrics| metrics.last_used() < recent);
    }
}

async fn named(
    client: &ClientWrapper,
    statement: &Statement,
    parameters: &Parameters<'_>,
) -> Result<Vec<Row>, tokio_postgres::Error> {
    let prepared = client
        .prepare_typed_cached(&statement.text, statement.types)
        .await?;
    client.query(&prepared, parameters).await
}

/// One message for everything: nothing stays on the connection, whose server may be another one
/// for the next statement.
async fn unnamed(
    client: &ClientWrapper,
    statement: &Statement,
    parameters: &Parameters<'_>,
) -> Result<Vec<Row>, tokio_postgres::Error> {
    let typed: Vec<(&(dyn ToSql + Sync), Type)> = parameters
        .iter()
        .copied()
        .zip(statement.types.iter().cloned())
        .collect();
    client.query_typed(&statement.text, &typed).await
}
