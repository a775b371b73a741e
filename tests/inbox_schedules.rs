//! What an inbox promises holds whatever happens, and in whatever order: the inbox, as it is, over
//! a store behind a bad line, in 2,000 schedules drawn from seeds.
//!
//! In a schedule two processes, each with a front and a worker, serve three messages of one or two
//! conversations, each delivered several times. Store calls and answers are lost, delayed beyond a
//! lease and doubled; the store is restarted; processes are killed and paused, also by a message;
//! senders leave; handlers fail, panic and outlive their leases; dead messages are redriven. Then
//! the faults stop, and all that was acknowledged must come to its end.
//!
//! Checked are: what was acknowledged was stored before, and is handled until it is done or dead
//! (7, 8); no turn is given while another's lease has not lapsed; none is begun, and no message
//! ends, under a token that was taken over; in a conversation a message begins when those that
//! were acknowledged before it was sent are done or dead; nothing that is done is handled again;
//! no message has more attempts than it may; a redrive undoes the death that it names.
//!
//! ```text
//! cargo test --features testing --test inbox_schedules
//! SCHEDULES=1000000 cargo test --features testing --test inbox_schedules
//! SCHEDULE_SEED=42 cargo test --features testing --test inbox_schedules -- --nocapture
//! ```
//!
//! That the schedules find what they are for can be seen by breaking the code. Each of these
//! changes, alone, is caught within the first hundred seeds:
//!
//! * `receive` acknowledges although the store did not answer;
//! * `Rows::take` also takes lines whose lease has not lapsed;
//! * `Rows::report` does not ask whose turn it is;
//! * `LineRow::put_off` does not hold the line back;
//! * `LineRow::lend` does not count lapses, or `decide::spent` makes nothing dead;
//! * `Rows::redrive` undoes the first death there is, whatever it is called.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "a schedule is a handful of tasks"
)]

#[path = "schedules/chance.rs"]
mod chance;
#[path = "inbox_schedules/handler.rs"]
mod handler;
#[path = "inbox_schedules/ledger.rs"]
mod ledger;
#[path = "schedules/line.rs"]
mod line;
#[path = "inbox_schedules/plan.rs"]
mod plan;
#[path = "schedules/process.rs"]
mod process;
#[path = "inbox_schedules/schedule.rs"]
mod schedule;
#[path = "inbox_schedules/store.rs"]
mod store;
#[path = "inbox_schedules/world.rs"]
mod world;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::schedule::Reached;

const SCHEDULES: u64 = 2_000;

/// Field case B118.
#[test]
fn the_promises_of_an_inbox_hold_in_every_schedule() {
    if let Some(seed) = number_in("SCHEDULE_SEED") {
        let (broken, _) = schedule::outcome(seed, true);
        assert_eq!(broken, None, "in the schedule of seed {seed}");
        return;
    }
    let count = number_in("SCHEDULES").unwrap_or(SCHEDULES);
    let reached = Mutex::new(Reached::default());
    let broken = first_broken(count, &reached);
    assert_eq!(broken, None, "SCHEDULE_SEED=… shows that schedule alone");
    reached.into_inner().unwrap().check();
}

/// Runs the schedules on all processors. Gives the lowest seed whose schedule breaks a promise.
fn first_broken(count: u64, reached: &Mutex<Reached>) -> Option<(u64, String)> {
    let next = AtomicU64::new(0);
    let search = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= count {
                return None;
            }
            let (broken, came) = schedule::outcome(seed, false);
            reached.lock().unwrap().add(&came);
            if let Some(why) = broken {
                next.store(count, Ordering::Relaxed);
                return Some((seed, why));
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let searches: Vec<_> = (0..threads).map(|_| scope.spawn(search)).collect();
        let found = searches.into_iter().map(|search| search.join().unwrap());
        found.flatten().min_by_key(|(seed, _)| *seed)
    })
}

fn number_in(variable: &str) -> Option<u64> {
    std::env::var(variable)
        .ok()
        .map(|text| text.parse().unwrap())
}
