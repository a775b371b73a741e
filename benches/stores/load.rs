//! So many callers that do the same again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::machine::{Took, Used};

/// What one run showed.
#[derive(Clone, Default)]
pub(crate) struct Shown {
    /// Per second.
    pub(crate) rate: f64,
    pub(crate) middle: Duration,
    pub(crate) worst_of_hundred: Duration,
    /// Processor time per request, of this process and the server.
    pub(crate) cost: Duration,
    pub(crate) foreign: f64,
}

/// Runs `request` by so many callers at once, for a time.
pub(crate) async fn closed<F>(
    callers: usize,
    time: Duration,
    server: Option<u32>,
    request: impl Fn() -> F + Clone + Send + 'static,
) -> Shown
where
    F: Future<Output = ()> + Send,
{
    let stop = Arc::new(AtomicBool::new(false));
    let used = Used::now(server);
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let (stop, request) = (Arc::clone(&stop), request.clone());
        tasks.spawn(async move {
            let mut latencies = Vec::with_capacity(100_000);
            while !stop.load(Ordering::Relaxed) {
                let began = Instant::now();
                request().await;
                latencies.push(began.elapsed());
            }
            latencies
        });
    }
    tokio::time::sleep(time).await;
    stop.store(true, Ordering::Relaxed);
    let all = tasks.join_all().await;
    shown(all.concat(), used.took(server))
}

fn shown(mut latencies: Vec<Duration>, took: Took) -> Shown {
    latencies.sort_unstable();
    let at = |share: f64| {
        let index = (latencies.len() as f64 * share).floor();
        latencies.get(float_to_index(index)).copied()
    };
    let count = u32::try_from(latencies.len().max(1)).unwrap();
    Shown {
        rate: f64::from(count) / took.time.as_secs_f64(),
        middle: at(0.5).unwrap_or_default(),
        worst_of_hundred: at(0.99).unwrap_or_default(),
        cost: took.ours / count,
        foreign: took.foreign,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place in a list"
)]
fn float_to_index(index: f64) -> usize {
    index as usize
}
