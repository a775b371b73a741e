//! What the parts of one inbox share.

use std::pin::pin;
use std::sync::Arc;

use tokio::time::timeout;

use crate::channel::contract::Channel;
use crate::error::Error;
use crate::flow::context::Context;
use crate::inbox::counts::{Counters, InboxCounts};
use crate::inbox::decide::Plan;
use crate::inbox::room::Room;
use crate::store::queue::contract::Queue;
use crate::store::queue::turn::{Report, TurnHold};

/// What the parts of one inbox share.
#[derive(Debug)]
pub(crate) struct Shared<Q, C> {
    /// The store, the channel, and how requests are read.
    pub(crate) context: Context<Q, C>,
    pub(crate) plan: Plan,
    pub(crate) counters: Arc<Counters>,
    pub(crate) room: Room,
}

impl<Q: Queue, C: Channel> Shared<Q, C> {
    /// A store call within its time limit. A failure is counted, and traced without keys.
    pub(crate) async fn within<T>(
        &self,
        call: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error>
    where
        T: Send,
    {
        let limit = self.context.options.store_limit;
        let answer = timeout(limit, pin!(call))
            .await
            .unwrap_or_else(|_| Err(Error::overdue("the store did not answer in time")));
        if let Err(error) = &answer {
            self.counters.store_failures.one();
            let cause = std::error::Error::source(error);
            tracing::warn!(%error, ?cause, "a store call of the inbox failed");
        }
        answer
    }

    /// Gives turns back that nobody will use. What the store does not hear lapses.
    pub(crate) async fn give_back(&self, turns: &[TurnHold]) {
        if turns.is_empty() {
            return;
        }
        let reports: Vec<Report> = turns.iter().copied().map(Report::give_back).collect();
        // A failure is counted and traced.
        drop(self.within(self.context.store.report(&reports)).await);
    }

    pub(crate) fn counts(&self) -> InboxCounts {
        let by_layer = self.context.counters.snapshot();
        InboxCounts {
            without_key: by_layer.without_key,
            refused: by_layer.refused,
            ..self.counters.snapshot()
        }
    }
}
