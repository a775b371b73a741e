//! One schedule, from its seed to its end.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{Either, join_all, select};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tower::ServiceExt;
use tower_idempotency::Counts;

use crate::chance::LEASE;
use crate::line::Ground;
use crate::plan::{Attempt, HEAL, PROCESSES, Plan};
use crate::process::Within;
use crate::world::World;

/// So long after the last fault all is done: what is still on its way arrives, a lease lapses,
/// and a slow handler ends.
const DONE_WITHIN: Duration = LEASE.saturating_mul(12);

/// How often a sender repeats once the faults have stopped.
const REPEAT: Duration = Duration::from_millis(200);

/// What came of a schedule.
pub(crate) struct Outcome {
    /// The first promise that was broken.
    pub(crate) broken: Option<String>,
    /// What the layer of each process did.
    pub(crate) counts: Vec<Counts>,
}

/// Runs the schedule of a seed.
pub(crate) fn outcome(seed: u64, told: bool) -> Outcome {
    tower_idempotency::testing::seed(Some(seed));
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(run(Plan::of(seed), told))
}

async fn run(plan: (Plan, rand::rngs::Xoshiro256PlusPlus), told: bool) -> Outcome {
    let world = World::new(plan, told);
    let began = Instant::now();
    for attempt in world.plan.attempts.clone() {
        drop(tokio::spawn(send_once(Arc::clone(&world), attempt, began)));
    }
    for (at, event) in world.plan.events.clone() {
        let world = Arc::clone(&world);
        tokio::spawn(async move {
            sleep_until(began + at).await;
            world.befall(event);
        });
    }
    sleep_until(began + HEAL).await;
    world.heal();
    let asked: BTreeSet<&str> = world.plan.attempts.iter().map(|a| a.letters).collect();
    join_all(
        asked
            .iter()
            .map(|letters| repeat_until_done(&world, letters)),
    )
    .await;
    // What is late still comes, and changes nothing.
    sleep(LEASE * 4).await;
    join_all(
        asked
            .iter()
            .map(|letters| repeat_until_done(&world, letters)),
    )
    .await;
    let outcome = Outcome {
        broken: world.broken(),
        counts: world.counts(),
    };
    world.end();
    outcome
}

/// A sender's request, while everything may go wrong.
async fn send_once(world: Arc<World>, attempt: Attempt, began: Instant) {
    sleep_until(began + attempt.at).await;
    let leaves = attempt.leaves_after.unwrap_or(LEASE * 100);
    // A sender that left learns nothing.
    timeout(leaves, send(&world, attempt.letters, attempt.process))
        .await
        .ok();
}

/// A sender that comes back until it is told that all is done.
async fn repeat_until_done(world: &Arc<World>, letters: &str) {
    let repeat = async {
        for place in (0..PROCESSES).cycle() {
            if send(world, letters, place).await == Some(StatusCode::OK) {
                return;
            }
            sleep(REPEAT).await;
        }
    };
    if timeout(DONE_WITHIN + world.plan.unknown_for, repeat)
        .await
        .is_err()
    {
        world.breaks(format_args!(
            "promise 6: {letters} is not done, and no fault is left"
        ));
    }
}

/// Sends the messages to the process at `place`; its status, unless the process dies first.
async fn send(world: &Arc<World>, letters: &str, place: usize) -> Option<StatusCode> {
    let (process, served) = world.serving(place);
    let request = Request::post("/")
        .body(Full::new(Bytes::from(letters.to_owned())))
        .unwrap();
    world.note(|| format!("{letters} goes to process {}", process.number));
    let answer = async {
        let response = served.oneshot(request).await.ok()?;
        let (head, body) = response.into_parts();
        // A body that broke is no answer.
        let body = body.collect().await.ok()?.to_bytes();
        Some((head.status, body))
    };
    let answer = AssertUnwindSafe(answer).catch_unwind();
    let answer = Within::new(&process, answer);
    let death = std::pin::pin!(process.death.cancelled());
    let (status, body) = match select(death, answer).await {
        Either::Left(_) => return None,
        Either::Right((answer, _)) => answer.ok()??,
    };
    world.note(|| {
        format!(
            "{letters} is answered {status} {body:?} by process {}",
            process.number
        )
    });
    if status.is_success() {
        world.succeeded(letters, &body);
    }
    Some(status)
}
