//! One schedule, from its seed to its end.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use http::Request;
use http_body_util::Full;
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tower::ServiceExt;

use crate::chance::LEASE;
use crate::ledger::REACHED;
use crate::line::Ground;
use crate::plan::{Delivery, HEAL, MESSAGES, PROCESSES, Plan};
use crate::process::Within;
use crate::world::World;

/// So long after the last fault all is done: what is still on its way arrives, leases lapse, what
/// failed is tried again.
const DONE_WITHIN: Duration = LEASE.saturating_mul(30);

/// How soon a sender repeats.
const REPEAT: Duration = Duration::from_millis(150);

/// How often the schedules came to what they are for: a check that never gets there proves
/// nothing.
#[derive(Default)]
pub(crate) struct Reached([u64; REACHED.len()]);

impl Reached {
    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum += more;
        }
    }

    #[expect(clippy::print_stdout, reason = "for who asks with --nocapture")]
    pub(crate) fn check(&self) {
        for (sum, name) in self.0.iter().zip(REACHED) {
            println!("{sum:>8} {name:?}");
            assert!(*sum > 0, "no schedule came to {name:?}");
        }
    }
}

/// Runs the schedule of a seed. Gives the first promise that was broken.
pub(crate) fn outcome(seed: u64, told: bool) -> (Option<String>, Reached) {
    tower_idempotency::testing::seed(Some(seed));
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(run(seed, told))
}

async fn run(seed: u64, told: bool) -> (Option<String>, Reached) {
    let world = World::new(Plan::of(seed), told);
    let began = Instant::now();
    for delivery in world.plan.deliveries.clone() {
        tokio::spawn(deliver(Arc::clone(&world), delivery, began));
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
    // What is late still comes: a redrive, a double of a report.
    sleep(LEASE * 4).await;
    for message in 0..MESSAGES {
        repeat(&world, message, 0).await;
    }
    end(&world).await;
    world.note(|| format!("it lasted {:?}", world.lasts()));
    let ledger = world.end();
    let broken = ledger.broken().map(str::to_owned);
    (broken, Reached(ledger.reached))
}

/// All that was acknowledged comes to its end, once what is dead is redriven.
async fn end(world: &Arc<World>) {
    let done = async {
        while world.unfinished().is_some() {
            world.redrive_all();
            sleep(REPEAT).await;
        }
    };
    if timeout(DONE_WITHIN, done).await.is_err() {
        let message = world.unfinished();
        world.breaks(format_args!(
            "message {message:?} was acknowledged and is not done, and no fault is left"
        ));
    }
}

/// A sender, while everything may go wrong.
async fn deliver(world: Arc<World>, delivery: Delivery, began: Instant) {
    sleep_until(began + delivery.at).await;
    let leaves = delivery.leaves_after.unwrap_or(HEAL);
    // A sender that left learns nothing.
    timeout(leaves, repeat(&world, delivery.message, delivery.process))
        .await
        .ok();
}

/// Sends a message to one process after the other until one acknowledges it.
async fn repeat(world: &Arc<World>, message: usize, first: usize) {
    for place in (0..PROCESSES).cycle().skip(first) {
        if send(world, message, place).await {
            return;
        }
        sleep(REPEAT).await;
    }
}

/// Sends the message to the process at `place`; whether it was acknowledged.
async fn send(world: &Arc<World>, message: usize, place: usize) -> bool {
    let (process, front) = world.serving(place);
    let chat = world.plan.chats[message].to_string();
    let body = json!({"id": message.to_string(), "chat": chat}).to_string();
    let request = Request::post("/").body(Full::from(body)).unwrap();
    world.sent(message);
    world.note(|| format!("{message} goes to process {}", process.number));
    let answer = Within::new(&process, front.oneshot(request));
    let death = std::pin::pin!(process.death.cancelled());
    let Either::Right((Ok(answer), _)) = select(death, answer).await else {
        return false;
    };
    let status = answer.status();
    world.note(|| {
        format!(
            "{message} is answered {status} by process {}",
            process.number
        )
    });
    if status.is_success() {
        world.acked(message);
    }
    status.is_success()
}
