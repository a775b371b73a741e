//! Leases are renewed while their run is alive.

use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;

use futures_util::future::{Either, select};
use tokio::time::sleep;

use crate::channel::contract::Channel;
use crate::flow::context::Context;
use crate::pace::renew_every;
use crate::store::contract::Store;
use crate::store::lease::{Hold, Standing};

/// Works while the leases are renewed. Without a renewal due, that costs nothing.
pub(crate) async fn keeping<S: Store, C: Channel, T: Send>(
    context: &Context<S, C>,
    holds: impl Fn() -> Vec<Hold> + Send + Sync,
    work: impl Future<Output = T> + Send,
) -> T {
    let renewing = async { renew_for_ever(context, holds()).await };
    match select(pin!(work), pin!(renewing)).await {
        Either::Left((done, _)) => done,
        Either::Right((never, _)) => match never {},
    }
}

async fn renew_for_ever<S: Store, C: Channel>(
    context: &Context<S, C>,
    mut holds: Vec<Hold>,
) -> Infallible {
    let lease = context.options.lease;
    while !holds.is_empty() {
        sleep(renew_every(lease)).await;
        // A renewal that failed is made good by the next one; until then, and even after the
        // lease has lapsed, the run goes on: only a take-over ends its right to record.
        if let Ok(standings) = context.within(context.store.renew(&holds, lease)).await {
            let before = holds.len();
            let mut standings = standings.into_iter();
            holds.retain(|_| standings.next() != Some(Standing::Lost));
            let lost = before - holds.len();
            if lost > 0 {
                context.counters.renewals_lost.add(lost);
                tracing::warn!(lost, "another run took over while this one went on");
            }
        }
    }
    pending().await
}
