//! A bad line: calls and answers are lost, late and doubled.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use tower_idempotency::Error;

use crate::chance::{pick, way};
use crate::process::Process;

/// What befalls one call.
#[derive(Debug, Default)]
pub(crate) struct Fate {
    /// How long the call travels.
    pub(crate) there: Duration,
    /// How long the answer travels.
    pub(crate) back: Duration,
    /// How long after the call its double comes.
    pub(crate) doubled_after: Option<Duration>,
    pub(crate) lost: Lost,
    /// Whether the caller is told at once that the line broke, or waits for nothing.
    pub(crate) silent: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Lost {
    #[default]
    Nothing,
    Call,
    Answer,
}

impl Fate {
    fn is_plain(&self) -> bool {
        self.there.is_zero()
            && self.back.is_zero()
            && self.doubled_after.is_none()
            && self.lost == Lost::Nothing
    }
}

/// What befalls a call where a fault of each kind has this chance.
pub(crate) fn fate(rng: &mut Xoshiro256PlusPlus, faults: f64) -> Fate {
    if faults == 0.0 {
        return Fate::default();
    }
    let now_and_then = |rng: &mut Xoshiro256PlusPlus| rng.random_bool(faults).then(|| way(rng));
    Fate {
        there: now_and_then(rng).unwrap_or_default(),
        back: now_and_then(rng).unwrap_or_default(),
        doubled_after: now_and_then(rng),
        lost: if rng.random_bool(faults) {
            pick(rng, &[Lost::Call, Lost::Answer])
        } else {
            Lost::Nothing
        },
        silent: rng.random_bool(0.5),
    }
}

/// Prints what happens, if somebody wants to be told.
#[expect(
    clippy::print_stdout,
    reason = "one schedule, told to whoever looks for a fault"
)]
pub(crate) fn tell(told: bool, began: Instant, what: impl FnOnce() -> String) {
    if told {
        println!("{:>7.1?} {}", began.elapsed(), what());
    }
}

/// Where a line leads to.
pub(crate) trait Ground: Send + Sync + 'static {
    /// What befalls the next call.
    fn fate(&self) -> Fate;

    /// How often the store was restarted: calls under way are cut off then.
    fn restarts(&self) -> usize;

    /// Tells what happens to whoever looks for a fault.
    fn note(&self, what: impl FnOnce() -> String);
}

/// Sends a call of a process, which `apply` performs where it arrives, and waits for its answer.
pub(crate) async fn call<G: Ground, T: Send + 'static>(
    (ground, process): (&Arc<G>, &Process),
    name: &'static str,
    apply: impl Fn(&G, usize) -> Result<T, Error> + Send + Sync + 'static,
) -> Result<T, Error> {
    process.running().await;
    let fate = ground.fate();
    ground.note(|| format!("process {} sends {name}: {fate:?}", process.number));
    if fate.is_plain() {
        return apply(ground, process.number);
    }
    let (told, answer) = oneshot::channel();
    let way = (Arc::clone(ground), process.number);
    tokio::spawn(travel(way, fate, apply, told));
    let answer = answer.await;
    process.running().await;
    answer.unwrap_or_else(|_| Err(Error::unavailable("the line broke")))
}

/// A call on its way, which goes on whatever becomes of its caller.
async fn travel<G: Ground, T: Send + 'static>(
    (ground, process): (Arc<G>, usize),
    fate: Fate,
    apply: impl Fn(&G, usize) -> Result<T, Error> + Send + Sync + 'static,
    told: oneshot::Sender<Result<T, Error>>,
) {
    let restarts = ground.restarts();
    sleep(fate.there).await;
    let mut answer = None;
    if fate.lost != Lost::Call && ground.restarts() == restarts {
        answer = Some(apply(&ground, process));
    }
    let double = async {
        if let Some(after) = fate.doubled_after {
            sleep(after).await;
            // Nobody waits for the answer of a double.
            drop(apply(&ground, process));
        }
    };
    let tell = async {
        sleep(fate.back).await;
        let is_lost = fate.lost == Lost::Answer || ground.restarts() != restarts;
        match answer.filter(|_| !is_lost) {
            Some(answer) => drop(told.send(answer)),
            None if fate.silent => std::future::pending().await,
            None => drop(told),
        }
    };
    futures_util::future::join(double, tell).await;
}
