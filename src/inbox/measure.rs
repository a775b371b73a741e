//! Counts what waits, for the gauges.

use std::sync::Arc;

use tokio::time::sleep;

use crate::channel::contract::Channel;
use crate::inbox::letters::gauge_backlog;
use crate::inbox::shared::Shared;
use crate::store::queue::contract::Queue;
use crate::watch::emit::IS_ON;

/// Sets the gauges of what waits and what is dead, as often as the inbox was told to, for as long
/// as it is polled.
pub(crate) async fn measure<Q: Queue, C: Channel>(shared: Arc<Shared<Q, C>>) {
    let every = shared.plan.measure_every.filter(|_| IS_ON);
    while let Some(every) = every {
        // A failure is counted and traced; the gauges stay as they are.
        if let Ok(backlog) = shared.within(shared.context.store.backlog()).await {
            gauge_backlog(&backlog);
        }
        sleep(every).await;
    }
}
