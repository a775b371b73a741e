//! What happens in one schedule, drawn from its seed.

use std::time::Duration;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::chance::{LEASE, pick, way};

/// How long a process waits for one store call.
pub(crate) const STORE_LIMIT: Duration = Duration::from_millis(300);

/// How many attempts a message has.
pub(crate) const ATTEMPTS: u32 = 4;

/// When the faults stop.
pub(crate) const HEAL: Duration = Duration::from_secs(6);

/// How many processes there are.
pub(crate) const PROCESSES: usize = 2;

/// How many messages there are.
pub(crate) const MESSAGES: usize = 3;

/// What happens, and when.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The conversation of each message.
    pub(crate) chats: [usize; MESSAGES],
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) events: Vec<(Duration, Event)>,
    /// How likely a store call meets with a fault of each kind.
    pub(crate) faults: f64,
    /// How likely a handler fails.
    pub(crate) failures: f64,
    /// How likely a handler takes longer than a lease.
    pub(crate) slowness: f64,
    /// How likely a handler kills its process.
    pub(crate) poison: f64,
}

/// One delivery of a message, which is repeated until it is acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) at: Duration,
    pub(crate) process: usize,
    pub(crate) message: usize,
    /// When the sender goes away, if it does.
    pub(crate) leaves_after: Option<Duration>,
}

/// What befalls a process or the store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// Whatever the process did ends, its turns stay behind; another process takes its place.
    Kill(usize),
    /// The process stands still, and goes on as if nothing had been.
    Pause(usize, Duration),
    /// Calls under way are cut off: applied or not, nobody is told.
    RestartStore,
    /// An operator redrives what is dead, over the line of this process.
    Redrive(usize),
}

impl Plan {
    /// The plan of a seed, and the chance that decides the rest.
    pub(crate) fn of(seed: u64) -> (Self, Xoshiro256PlusPlus) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let chats = [0, 0, rng.random_range(0..2)];
        let count = rng.random_range(MESSAGES..2 * MESSAGES + 1);
        let deliveries = (0..count)
            .map(|number| delivery(number, &mut rng))
            .collect();
        let events = (0..rng.random_range(0..5)).map(|_| event(&mut rng));
        let plan = Self {
            chats,
            deliveries,
            events: events.collect(),
            faults: pick(&mut rng, &[0.0, 0.03, 0.1, 0.3]),
            failures: pick(&mut rng, &[0.0, 0.2, 0.6]),
            slowness: pick(&mut rng, &[0.0, 0.2, 0.6]),
            poison: pick(&mut rng, &[0.0, 0.0, 0.1, 0.5]),
        };
        (plan, rng)
    }
}

/// Each message comes at least once.
fn delivery(number: usize, rng: &mut Xoshiro256PlusPlus) -> Delivery {
    Delivery {
        at: LEASE.mul_f64(pick(rng, &[0.0, 0.1, 1.0, 4.0]) * rng.random_range(0.0..1.0)),
        process: rng.random_range(0..PROCESSES),
        message: number % MESSAGES,
        leaves_after: rng.random_bool(0.2).then(|| way(rng)),
    }
}

fn event(rng: &mut Xoshiro256PlusPlus) -> (Duration, Event) {
    let at = LEASE.mul_f64(rng.random_range(0.0..5.0));
    let process = rng.random_range(0..PROCESSES);
    let event = match rng.random_range(0..8) {
        0 | 1 => Event::Kill(process),
        2 | 3 => Event::Pause(process, way(rng)),
        4 => Event::RestartStore,
        _ => Event::Redrive(process),
    };
    (at, event)
}
