//! A transaction of the database, lent to a run.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deadpool_postgres::ClientWrapper;
use futures_util::future::{BoxFuture, join};
use tokio::time::timeout;
use tokio_postgres::error::SqlState;

use crate::error::Error;
use crate::store::lease::{Settlement, Token};
use crate::store::loan::{Committed, Loan};
use crate::store::postgres::database::{Database, Parameters};
use crate::store::postgres::fault::{Fault, is_certain};
use crate::store::postgres::held::Held;
use crate::store::postgres::inbox::accept::{self, AcceptCall};
use crate::store::postgres::inbox::report;
use crate::store::postgres::lent::{Lending, Lent, PostgresTransaction, no_connection};
use crate::store::postgres::settle::{self, SettleCall};
use crate::store::postgres::table::Statement;
use crate::store::queue::arrival::Arrival;
use crate::store::queue::turn::{Onward, Report};

/// The transaction that a run may borrow.
pub(crate) struct PostgresLoan(Lent);

impl PostgresLoan {
    pub(super) fn new(lending: Arc<Lending>, run: Token) -> Self {
        Self(Lent::new(lending, run))
    }

    /// The transaction, begun if it is not yet. Waits for a connection, and for whoever has it,
    /// within the store's limit.
    pub(crate) async fn borrow(&self) -> Result<PostgresTransaction, Error> {
        self.0.borrow().await
    }

    async fn record(
        &self,
        effects: &[Arrival],
        settlements: &[Settlement],
    ) -> Result<Committed<()>, Error> {
        let call = SettleCall::new(settlements)?;
        let held = match self.0.take_back().await {
            Ok(held) => held,
            Err(error) => return Ok(Committed::RolledBack(error)),
        };
        let verdict = match held.client() {
            Some(client) => self.conclude(client, effects, &call).await,
            None => return Ok(Committed::RolledBack(no_connection())),
        };
        if let Ok(Committed::Applied(()) | Committed::Superseded) = verdict {
            held.give_back();
        }
        if !effects.is_empty() && matches!(verdict, Ok(Committed::Applied(()))) {
            self.0.lending.news.notify_one();
        }
        verdict
    }

    /// The record, then the effects, then `COMMIT`, which rolls back if one of them failed.
    ///
    /// The record fails where this is not the transaction that was lent. Outside of one, what comes
    /// behind it would be in force all the same: so effects are sent only once it did not, and what
    /// can go together with `COMMIT` does.
    async fn conclude(
        &self,
        client: &ClientWrapper,
        effects: &[Arrival],
        call: &SettleCall,
    ) -> Result<Committed<()>, Error> {
        let (database, outbox) = (&self.0.lending.database, &self.0.lending.outbox);
        let run = self.0.run.number().to_string();
        let records = settle::conclusion(call);
        let conclude = records.statement(&database.statements);
        let parameters = records.with_run(&run);
        let commit = client.batch_execute("COMMIT");
        let ended = if effects.is_empty() {
            together(database, client, (conclude, &parameters), commit).await
        } else {
            let arrivals = [AcceptCall::of(effects)];
            let arrivals = accept::Columns::of(&arrivals);
            let accept = (&outbox.statements.accept, &arrivals.parameters()[..]);
            match database.send(client, conclude, &parameters).await {
                Ok(_) => together(outbox, client, accept, commit).await,
                Err(error) => {
                    // Rolls back, and leaves the connection as it was; the error says why.
                    drop(commit.await);
                    Err(error)
                }
            }
        };
        match ended {
            Ok(()) => Ok(Committed::Applied(())),
            Err(error) => judge(error),
        }
    }

    async fn report(
        &self,
        effects: &[Arrival],
        report: &Report,
    ) -> Result<Committed<Onward>, Error> {
        let held = match self.0.take_back().await {
            Ok(held) => held,
            Err(error) => return Ok(Committed::RolledBack(error)),
        };
        let Some(client) = held.client() else {
            return Ok(Committed::RolledBack(no_connection()));
        };
        // Before the commit is sent, whatever fails means that nothing is in force.
        let onward = match self.written(client, effects, report).await {
            Ok(onward) => onward,
            Err(error) => return Ok(Committed::RolledBack(error)),
        };
        if onward == Onward::Lost {
            roll_back(held).await;
            return Ok(Committed::Superseded);
        }
        if let Err(error) = client.batch_execute("COMMIT").await {
            return judge(error);
        }
        held.give_back();
        self.0.lending.tidy.note(1);
        if !effects.is_empty() {
            self.0.lending.news.notify_one();
        }
        Ok(Committed::Applied(onward))
    }

    /// Writes effects and a report into the transaction, once it is sure that it is the one that
    /// was lent: outside of it the report would be in force at once.
    async fn written(
        &self,
        client: &ClientWrapper,
        effects: &[Arrival],
        report: &Report,
    ) -> Result<Onward, Error> {
        let failed = |error| Fault::of_statement(error).error;
        let run = client.query_typed(RUN, &[]).await.map_err(failed)?;
        let run = run.first().map(|row| row.try_get::<_, Option<String>>(0));
        let run = run.transpose().map_err(failed)?.flatten();
        if run != Some(self.0.run.number().to_string()) {
            return Err(ended_by_handler());
        }
        if !effects.is_empty() {
            let arrivals = [AcceptCall::of(effects)];
            let columns = accept::Columns::of(&arrivals);
            let outbox = &self.0.lending.outbox;
            let parameters = columns.parameters();
            let accept = outbox.send(client, &outbox.statements.accept, &parameters);
            accept.await.map_err(failed)?;
        }
        let database = &self.0.lending.database;
        let columns = report::Columns::of(&[(0, report)]);
        let parameters = columns.parameters();
        let rows = database.send(client, &database.statements.report, &parameters);
        let rows = rows.await.map_err(failed)?;
        report::onward(report, &rows).map_err(|fault| fault.error)
    }

    async fn within_limit<T>(
        &self,
        ending: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        let began = Instant::now();
        // What takes too long is cut with its connection.
        timeout(self.0.lending.limit, ending)
            .await
            .unwrap_or_else(|_| {
                self.0.lending.database.distrust(began);
                Err(Error::overdue("the database did not answer in time"))
            })
    }
}

impl Loan for PostgresLoan {
    fn is_begun(&self) -> bool {
        self.0.is_begun()
    }

    fn record<'a>(
        &'a self,
        effects: &'a [Arrival],
        settlements: &'a [Settlement],
    ) -> BoxFuture<'a, Result<Committed<()>, Error>> {
        Box::pin(self.within_limit(self.record(effects, settlements)))
    }

    fn report<'a>(
        &'a self,
        effects: &'a [Arrival],
        report: &'a Report,
    ) -> BoxFuture<'a, Result<Committed<Onward>, Error>> {
        Box::pin(self.within_limit(self.report(effects, report)))
    }

    fn roll_back(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            match self.0.end().await {
                Ok(Some(held)) => roll_back(held).await,
                Ok(None) => {}
                // When whoever holds it lets go, the connection is closed.
                Err(error) => tracing::warn!(%error, "a transaction could not be rolled back"),
            }
        })
    }
}

/// Sends a statement and `COMMIT` in one go. Of two errors the first is the cause.
async fn together(
    database: &Database,
    client: &ClientWrapper,
    (statement, parameters): (&Statement, &Parameters<'_>),
    commit: impl Future<Output = Result<(), tokio_postgres::Error>>,
) -> Result<(), tokio_postgres::Error> {
    // What is not prepared yet would be sent behind the commit.
    database.prepare(client, statement).await?;
    let sent = database.send(client, statement, parameters);
    let (sent, committed) = join(sent, commit).await;
    sent.and(committed)
}

/// What an error says about the transaction. If the server says that it failed, nothing was
/// committed.
fn judge<T>(error: tokio_postgres::Error) -> Result<Committed<T>, Error> {
    match error.code().map(SqlState::code) {
        Some(SUPERSEDED) => Ok(Committed::Superseded),
        Some(ENDED) => Ok(Committed::RolledBack(ended_by_handler())),
        Some(_) if is_certain(&error) => {
            Ok(Committed::RolledBack(Fault::of_statement(error).error))
        }
        Some(_) | None => Err(Fault::of_statement(error).error),
    }
}

const RUN: &str = "SELECT current_setting('tower.run', true)";

/// What `idempotency_conclude` raises: another run has a row.
const SUPERSEDED: &str = "TI001";
/// What `idempotency_conclude` raises: this is not the transaction that was lent.
const ENDED: &str = "TI002";

fn ended_by_handler() -> Error {
    Error::misconfigured(
        "the handler ended the run's transaction by itself; use SAVEPOINT for a part of it",
    )
}

/// A connection that cannot say so is closed, which ends its transaction, too.
async fn roll_back(held: Held) {
    let sent = match held.client() {
        Some(client) => timeout(ROLLBACK_LIMIT, client.batch_execute("ROLLBACK")).await,
        None => return,
    };
    if matches!(sent, Ok(Ok(()))) {
        held.give_back();
    }
}

const ROLLBACK_LIMIT: Duration = Duration::from_secs(1);

impl fmt::Debug for PostgresLoan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresLoan")
            .field("run", &self.0.run)
            .field("is_begun", &self.is_begun())
            .finish_non_exhaustive()
    }
}
