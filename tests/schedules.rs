//! What is promised holds whatever happens, and in whatever order: the layer, as it is, over a
//! store behind a bad line, in 100,000 schedules drawn from seeds.
//!
//! In a schedule two processes serve three senders' requests for one or two messages. Store calls
//! and answers are lost, delayed beyond a lease and doubled; the store is restarted; processes are
//! killed and paused; senders leave; handlers fail, panic, outlive their leases, stream their
//! answer and give messages back. In every fourth schedule what nobody knows the outcome of is
//! parked for a time. Then the faults stop and the senders repeat until all is done.
//! Time is tokio's paused time, and all chance comes from the seed, so a schedule repeats exactly.
//!
//! Checked are: one record that stays (1), one unlapsed lease (2), one success for all (3), no run
//! granted after a success (4), everything is done soon after the faults stop (6), a success says
//! that every message of the request was handled and is done (8); where outcomes are parked, no run
//! granted while the last one neither ended nor has been unknown for its time.
//!
//! ```text
//! cargo test --features testing --test schedules                       the first 100,000 seeds
//! SCHEDULES=1000000 cargo test --features testing --test schedules     more of them
//! SCHEDULE_SEED=42 cargo test --features testing --test schedules -- --nocapture
//! ```
//!
//! The last line tells one schedule, step by step; a seed that breaks a promise is printed.
//!
//! That the schedules find what they are for can be seen by breaking the code. Each of these
//! changes, alone, is caught within the first thousand seeds:
//!
//! * `Table::claim` judges which keys are free when it is first asked, and takes those keys without
//!   a condition when the same nonce asks again;
//! * `Nonce::random` gives every attempt the same nonce;
//! * a fresh row has token 1, and a take-over counts it up, instead of one sequence for all;
//! * `Table::settle_one` matches the key alone: for records, or for releases;
//! * `Answering::answer` answers first and settles in a task behind it;
//! * `OnUnconfirmed::AnswerSuccess` is the default;
//! * `Answering::after` gives a superseded run's own response;
//! * `policy::step` waits while some messages run elsewhere, and `decide` renews what it holds;
//! * `Claim::unknown_for` is not passed on, or not heeded by `Row::answer`;
//! * `Table::settle` also ends all running rows that have the nonce of the row that it ends.
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
#[path = "schedules/channel.rs"]
mod channel;
#[path = "schedules/handler.rs"]
mod handler;
#[path = "schedules/ledger.rs"]
mod ledger;
#[path = "schedules/line.rs"]
mod line;
#[path = "schedules/plan.rs"]
mod plan;
#[path = "schedules/process.rs"]
mod process;
#[path = "schedules/schedule.rs"]
mod schedule;
#[path = "schedules/store.rs"]
mod store;
#[path = "schedules/world.rs"]
mod world;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tower_idempotency::Counts;

const SCHEDULES: u64 = 100_000;

/// Field case P24.
#[test]
fn the_promises_hold_in_every_schedule() {
    if let Some(seed) = number_in("SCHEDULE_SEED") {
        let outcome = schedule::outcome(seed, true);
        assert_eq!(outcome.broken, None, "in the schedule of seed {seed}");
        return;
    }
    let count = number_in("SCHEDULES").unwrap_or(SCHEDULES);
    let reached = Reached::default();
    if let Some((seed, why)) = first_broken(count, &reached) {
        panic!("seed {seed}: {why}\nSCHEDULE_SEED={seed} shows this schedule alone");
    }
    reached.check();
}

/// Runs the schedules on all processors. Gives the lowest seed whose schedule breaks a promise.
fn first_broken(count: u64, reached: &Reached) -> Option<(u64, String)> {
    let next = AtomicU64::new(0);
    let search = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= count {
                return None;
            }
            let outcome = schedule::outcome(seed, false);
            reached.add(&outcome.counts);
            if let Some(why) = outcome.broken {
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

/// How often the schedules came to what they are for: a check that never gets there proves
/// nothing.
#[derive(Default)]
struct Reached([AtomicU64; REACHED.len()]);

type Count = (&'static str, fn(&Counts) -> u64);

const REACHED: [Count; 12] = [
    ("replays", |counts| counts.replayed),
    ("acks", |counts| counts.acked),
    ("waits", |counts| counts.waited),
    ("repeats told to come again", |counts| counts.busy),
    ("releases", |counts| counts.released),
    ("parked messages", |counts| counts.parked),
    ("repeats told that nobody knows", |counts| counts.unknown),
    ("superseded runs", |counts| counts.superseded),
    ("unconfirmed ends", |counts| counts.unconfirmed),
    ("lost leases", |counts| counts.renewals_lost),
    ("runs without a caller", |counts| counts.detached),
    ("failed store calls", |counts| counts.store_failures),
];

impl Reached {
    fn add(&self, counts: &[Counts]) {
        for (sum, (_, count)) in self.0.iter().zip(REACHED) {
            sum.fetch_add(counts.iter().map(count).sum(), Ordering::Relaxed);
        }
    }

    #[expect(clippy::print_stdout, reason = "for who asks with --nocapture")]
    fn check(&self) {
        for (sum, (name, _)) in self.0.iter().zip(REACHED) {
            let sum = sum.load(Ordering::Relaxed);
            println!("{sum:>8} {name}");
            assert!(sum > 0, "no schedule came to {name}");
        }
    }
}

fn number_in(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
