//! Removes, on its own timer, rows whose retention has ended, and keeps busy tables small.

use std::sync::Weak;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use crate::error::Error;

/// What the sweeper needs of its store.
pub(super) trait Sweep: Send + Sync + 'static {
    /// Looks at up to so many rows whose retention has ended, removes those that may go, and gives
    /// how many it looked at.
    fn step(&self, limit: usize) -> impl Future<Output = Result<u64, Error>> + Send;

    /// Vacuums the tables that grow under load.
    fn tidy(&self) -> impl Future<Output = Result<(), Error>> + Send;
}

/// The running sweeper; it stops when this is dropped.
pub(super) type Sweeper = AbortOnDropHandle<()>;

/// How many rows go in one transaction.
const BATCH: usize = 1000;

/// Starts the sweeper, if there is a runtime to run it. Its handle lies in the store.
pub(super) fn start<S: Sweep>(store: Weak<S>, every: Duration) -> Option<Sweeper> {
    let runtime = Handle::try_current().ok()?;
    Some(AbortOnDropHandle::new(runtime.spawn(run(store, every))))
}

/// Ends with the store at the latest, also in the middle of a pause.
async fn run<S: Sweep>(store: Weak<S>, every: Duration) {
    tokio::join!(sweep_often(&store, every), tidy_often(&store));
}

async fn sweep_often<S: Sweep>(store: &Weak<S>, every: Duration) {
    loop {
        sleep(jittered(every)).await;
        if sweep_all(store).await.is_none() {
            return;
        }
    }
}

/// Removes batch after batch. `None` if the store is gone.
async fn sweep_all<S: Sweep>(store: &Weak<S>) -> Option<()> {
    loop {
        let began = Instant::now();
        let looked = store.upgrade()?.step(BATCH).await;
        match looked.map(usize::try_from) {
            Ok(Ok(BATCH)) => sleep(began.elapsed().max(PAUSE)).await,
            Ok(_) => return Some(()),
            Err(error) => {
                tracing::warn!(%error, "sweeping failed; it is tried again later");
                return Some(());
            }
        }
    }
}

async fn tidy_often<S: Sweep>(store: &Weak<S>) {
    let mut pause = TIDY;
    loop {
        sleep(jittered(pause)).await;
        let Some(store) = store.upgrade() else {
            return;
        };
        let began = Instant::now();
        if let Err(error) = store.tidy().await {
            tracing::warn!(%error, "vacuuming failed; it is tried again later");
        }
        // Where an old snapshot keeps the dead rows alive, vacuuming takes long and helps nobody.
        pause = TIDY.max(began.elapsed() * 10);
    }
}

/// How often a busy inbox is looked at.
const TIDY: Duration = Duration::from_secs(5);

/// Between batches claims have the server to themselves for at least as long as the batch took.
const PAUSE: Duration = Duration::from_millis(10);

/// From three quarters to five quarters, so that processes do not sweep in step.
fn jittered(every: Duration) -> Duration {
    every.mul_f64(rand::random_range(0.75..1.25))
}
