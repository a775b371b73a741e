//! All there is in one schedule: the store, the processes, and what decides by chance.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use tokio::time::Instant;
use tower::Layer;
use tower_idempotency::store::{MemoryStore, Token};
use tower_idempotency::{Counts, Error, Idempotency, IdempotencyLayer, Key, OnUnknown};

use crate::chance::LEASE;
use crate::channel::Letters;
use crate::handler::{End, Handler, Work};
use crate::ledger::Ledger;
use crate::line::{self, Fate, Ground};
use crate::plan::{Event, PROCESSES, Plan, STORE_LIMIT, WAIT};
use crate::process::Process;
use crate::store::Line;

pub(crate) type Served = Idempotency<Handler, Line, Letters>;

pub(crate) struct World {
    pub(crate) plan: Plan,
    store: MemoryStore,
    ledger: Mutex<Ledger>,
    rng: Mutex<Xoshiro256PlusPlus>,
    serving: Mutex<Vec<(Arc<Process>, Served)>>,
    layers: Mutex<Vec<IdempotencyLayer<Line, Letters>>>,
    processes: AtomicUsize,
    runs: AtomicUsize,
    restarts: AtomicUsize,
    healed: AtomicBool,
    began: Instant,
    /// Whether what happens is printed.
    told: bool,
}

impl World {
    pub(crate) fn new((plan, rng): (Plan, Xoshiro256PlusPlus), told: bool) -> Arc<Self> {
        let world = Arc::new(Self {
            store: MemoryStore::new(),
            ledger: Mutex::new(Ledger::new(plan.unknown_for)),
            rng: Mutex::new(rng),
            serving: Mutex::default(),
            layers: Mutex::default(),
            processes: AtomicUsize::new(0),
            runs: AtomicUsize::new(0),
            restarts: AtomicUsize::new(0),
            healed: AtomicBool::new(false),
            began: Instant::now(),
            told,
            plan,
        });
        world.note(|| format!("{:?}", world.plan));
        for _ in 0..PROCESSES {
            let process = world.started();
            lock(&world.serving).push(process);
        }
        world
    }

    /// A fresh process: nothing of it is known from before but the store.
    fn started(self: &Arc<Self>) -> (Arc<Process>, Served) {
        let number = self.processes.fetch_add(1, Ordering::Relaxed);
        let process = Arc::new(Process::new(number));
        let line = Line {
            world: Arc::clone(self),
            process: Arc::clone(&process),
        };
        let handler = Handler {
            world: Arc::clone(self),
            process: Arc::clone(&process),
        };
        let layer = IdempotencyLayer::new(line, Letters::new(self.plan.mode))
            .lease(LEASE)
            .wait(WAIT)
            .store_limit(STORE_LIMIT)
            .on_unknown(match self.plan.unknown_for {
                Duration::ZERO => OnUnknown::RunAgain,
                unknown_for => OnUnknown::Park { unknown_for },
            });
        let served = layer.layer(handler);
        lock(&self.layers).push(layer);
        (process, served)
    }

    /// The process at this place, and its service.
    pub(crate) fn serving(&self, place: usize) -> (Arc<Process>, Served) {
        lock(&self.serving)[place].clone()
    }

    pub(crate) fn befall(self: &Arc<Self>, event: Event) {
        self.note(|| format!("{event:?}"));
        match event {
            Event::Kill(place) => {
                let next = self.started();
                let (dead, _) = std::mem::replace(&mut lock(&self.serving)[place], next);
                dead.death.cancel();
            }
            Event::Pause(place, time) => self.serving(place).0.pause(Instant::now() + time),
            Event::RestartStore => {
                self.restarts.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// From now on nothing goes wrong any more.
    pub(crate) fn heal(&self) {
        self.note(|| "the faults stop".to_owned());
        self.healed.store(true, Ordering::Relaxed);
    }

    fn is_healed(&self) -> bool {
        self.healed.load(Ordering::Relaxed)
    }

    /// Lets go of the processes, dead ones too, which hold the world as it holds them. The tasks
    /// that are left go with their runtime.
    pub(crate) fn end(&self) {
        lock(&self.serving).clear();
        lock(&self.layers).clear();
    }

    /// What all layers did, dead ones too.
    pub(crate) fn counts(&self) -> Vec<Counts> {
        lock(&self.layers)
            .iter()
            .map(IdempotencyLayer::counts)
            .collect()
    }

    /// How the next run goes.
    pub(crate) fn work(&self, messages: usize) -> Work {
        let mut rng = lock(&self.rng);
        let rng = &mut *rng;
        let plan = &self.plan;
        let slow = rng.random_bool(plan.slowness);
        let takes = LEASE.mul_f64(rng.random_range(0.0..if slow { 2.5 } else { 0.2 }));
        if self.is_healed() {
            return Work {
                takes,
                end: End::Success,
                gives_one_back: false,
            };
        }
        let end = match (rng.random_bool(plan.failures), rng.random_range(0..10)) {
            (true, 0) => End::Panic,
            (true, 1 | 2) => End::Error,
            (true, _) => End::Status500,
            (false, 0) => End::Pieces(takes),
            (false, _) => End::Success,
        };
        let gives_one_back = messages > 1 && rng.random_bool(plan.failures);
        Work {
            takes,
            end,
            gives_one_back,
        }
    }

    pub(crate) fn apply<T>(
        &self,
        process: usize,
        call: impl Fn(&mut Ledger, &MemoryStore, usize) -> Result<T, Error>,
    ) -> Result<T, Error> {
        call(&mut lock(&self.ledger), &self.store, process)
    }

    pub(crate) fn begins(&self) -> usize {
        self.runs.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn handled(&self, done: &[(Key, Token)]) {
        for (key, token) in done {
            lock(&self.ledger).handled(key, *token);
        }
    }

    pub(crate) fn succeeded(&self, letters: &str, body: &bytes::Bytes) {
        lock(&self.ledger).succeeded(&self.store, letters, body);
    }

    pub(crate) fn breaks(&self, why: impl Display) {
        lock(&self.ledger).breaks(why);
    }

    pub(crate) fn broken(&self) -> Option<String> {
        lock(&self.ledger).broken().map(str::to_owned)
    }
}

impl Ground for World {
    fn fate(&self) -> Fate {
        if self.is_healed() {
            return Fate::default();
        }
        line::fate(&mut lock(&self.rng), self.plan.faults)
    }

    fn restarts(&self) -> usize {
        self.restarts.load(Ordering::Relaxed)
    }

    fn note(&self, what: impl FnOnce() -> String) {
        line::tell(self.told, self.began, what);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
