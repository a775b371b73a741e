//! What happens in one schedule, drawn from its seed.

use std::time::Duration;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::chance::{LEASE, pick, way};

/// How long a process waits for one store call.
pub(crate) const STORE_LIMIT: Duration = Duration::from_millis(300);

/// How long a repeat waits for the first run.
pub(crate) const WAIT: Duration = Duration::from_millis(1500);

/// For how long nothing runs whose outcome is unknown, where that is parked.
pub(crate) const UNKNOWN_FOR: Duration = LEASE.saturating_mul(3);

/// When the faults stop.
pub(crate) const HEAL: Duration = Duration::from_secs(5);

/// How many processes serve the requests.
pub(crate) const PROCESSES: usize = 2;

/// How the messages come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// One message in a request, its reply is the body of the answer.
    InLine,
    /// One or two messages in a request.
    Batched,
}

/// What happens, and when.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) mode: Mode,
    /// For how long nothing runs whose outcome is unknown; zero where it runs again.
    pub(crate) unknown_for: Duration,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) events: Vec<(Duration, Event)>,
    /// How likely a store call meets with a fault of each kind.
    pub(crate) faults: f64,
    /// How likely a handler fails.
    pub(crate) failures: f64,
    /// How likely a handler takes longer than a lease.
    pub(crate) slowness: f64,
}

/// One request of a sender.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) at: Duration,
    pub(crate) process: usize,
    /// The messages: one letter each.
    pub(crate) letters: &'static str,
    /// When the sender goes away, if it does.
    pub(crate) leaves_after: Option<Duration>,
}

/// What befalls a process or the store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// Whatever the process did ends, its leases stay behind; another process takes its place.
    Kill(usize),
    /// The process stands still, and goes on as if nothing had been.
    Pause(usize, Duration),
    /// Calls under way are cut off: applied or not, nobody is told.
    RestartStore,
}

impl Plan {
    /// The plan of a seed, and the chance that decides the rest.
    pub(crate) fn of(seed: u64) -> (Self, Xoshiro256PlusPlus) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mode = if rng.random_bool(0.5) {
            Mode::InLine
        } else {
            Mode::Batched
        };
        let attempts = (0..3).map(|_| attempt(mode, &mut rng)).collect();
        let events = (0..rng.random_range(0..4)).map(|_| event(&mut rng));
        let plan = Self {
            mode,
            // Not drawn, so that the other schedules stay what they were.
            unknown_for: if seed % 4 == 3 {
                UNKNOWN_FOR
            } else {
                Duration::ZERO
            },
            attempts,
            events: events.collect(),
            faults: pick(&mut rng, &[0.0, 0.03, 0.1, 0.3]),
            failures: pick(&mut rng, &[0.0, 0.2, 0.6]),
            slowness: pick(&mut rng, &[0.0, 0.2, 0.6]),
        };
        (plan, rng)
    }
}

fn attempt(mode: Mode, rng: &mut Xoshiro256PlusPlus) -> Attempt {
    let letters = match mode {
        Mode::InLine => "a",
        Mode::Batched => pick(rng, &["a", "b", "ab", "ab", "ba"]),
    };
    Attempt {
        at: LEASE.mul_f64(pick(rng, &[0.0, 0.1, 1.0, 3.0]) * rng.random_range(0.0..1.0)),
        process: rng.random_range(0..PROCESSES),
        letters,
        leaves_after: rng.random_bool(0.3).then(|| way(rng)),
    }
}

fn event(rng: &mut Xoshiro256PlusPlus) -> (Duration, Event) {
    let at = LEASE.mul_f64(rng.random_range(0.0..3.5));
    let process = rng.random_range(0..PROCESSES);
    let event = match rng.random_range(0..5) {
        0 | 1 => Event::Kill(process),
        2 | 3 => Event::Pause(process, way(rng)),
        _ => Event::RestartStore,
    };
    (at, event)
}
