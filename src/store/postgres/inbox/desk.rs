//! Everything that an inbox asks of the server.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::error::Error;
use crate::key::Conversation;
use crate::store::postgres::database::Database;
use crate::store::postgres::fault::Fault;
use crate::store::postgres::id::Id;
use crate::store::postgres::inbox::accept_ways::AcceptWays;
use crate::store::postgres::inbox::chores::{Chores, Swept};
use crate::store::postgres::inbox::report::ReportJob;
use crate::store::postgres::inbox::tidy::Tidy;
use crate::store::postgres::inbox::turns::RenewJob;
use crate::store::postgres::lanes::Lanes;
use crate::store::postgres::options::PostgresOptions;

/// The inbox's side of a [`PostgresStore`](crate::store::PostgresStore). Accepting, reporting and
/// renewing have lanes of their own.
pub(crate) struct Inbox {
    pub(super) accepts: AcceptWays,
    pub(super) reports: Lanes<ReportJob>,
    pub(super) renewals: Lanes<RenewJob>,
    pub(super) chores: Chores,
    pub(crate) tidy: Arc<Tidy>,
    pub(super) database: Arc<Database>,
    limit: Duration,
}

impl Inbox {
    pub(crate) fn new(database: &Arc<Database>, options: &PostgresOptions) -> Self {
        let (most, limit) = (options.lanes, options.limit);
        let share = || Arc::clone(database);
        Self {
            accepts: AcceptWays::new(database, most, limit),
            reports: Lanes::new(ReportJob(share()), most, limit),
            renewals: Lanes::new(RenewJob(share()), most, limit),
            chores: Chores::of(&options.table),
            tidy: Arc::new(Tidy::of(&options.table)),
            database: share(),
            limit,
        }
    }

    /// Drops the messages of a conversation, and counts them.
    pub(crate) async fn forget(&self, conversation: &Conversation) -> Result<u64, Error> {
        let id = Id::of_conversation(conversation);
        self.within_limit(self.chores.drop_line(&self.database, id))
            .await
    }

    pub(crate) async fn close(&self, conversation: &Conversation) -> Result<(), Error> {
        let id = Id::of_conversation(conversation);
        self.within_limit(self.chores.close(&self.database, id))
            .await
    }

    /// Removes up to so many keys.
    pub(crate) async fn sweep(&self, limit: i64) -> Result<Swept, Error> {
        self.within_limit(self.chores.sweep(&self.database, limit))
            .await
    }

    /// Vacuums the tables of a busy inbox.
    pub(crate) async fn tidy(&self) -> Result<(), Error> {
        match timeout(PATIENCE, self.tidy.tidy(&self.database)).await {
            Ok(tidied) => tidied.map_err(|fault| fault.error),
            Err(_) => Err(Error::overdue("vacuuming takes long")),
        }
    }

    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    pub(super) async fn within_limit<T>(
        &self,
        call: impl Future<Output = Result<T, Fault>> + Send,
    ) -> Result<T, Error> {
        match timeout(self.limit, call).await {
            Ok(answer) => answer.map_err(|fault| fault.error),
            Err(_) => Err(Error::overdue("the database did not answer in time")),
        }
    }
}

/// How long vacuuming may take: no caller waits for it.
const PATIENCE: Duration = Duration::from_mins(1);
