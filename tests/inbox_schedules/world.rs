//! All there is in one schedule: the store, the processes, and what decides by chance.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use tokio::time::{Instant, sleep};
use tower_idempotency::Error;
use tower_idempotency::channel::JsonPath;
use tower_idempotency::inbox::{Front, Inbox};
use tower_idempotency::store::{Death, Line, MemoryStore, Queue, Token};
use tower_idempotency::verify::Unverified;

use crate::chance::{LEASE, way};
use crate::handler::{End, Handler, Work};
use crate::ledger::{Ledger, now};
use crate::line::{self, Fate, Ground};
use crate::plan::{ATTEMPTS, Event, PROCESSES, Plan, STORE_LIMIT};
use crate::process::Process;
use crate::store::BadLine;

pub(crate) type Served = Front<Handler, BadLine, Unverified<JsonPath>, Full<Bytes>>;

pub(crate) struct World {
    pub(crate) plan: Plan,
    store: MemoryStore,
    ledger: Mutex<Ledger>,
    rng: Mutex<Xoshiro256PlusPlus>,
    serving: Mutex<Vec<(Arc<Process>, Served)>>,
    processes: AtomicUsize,
    restarts: AtomicUsize,
    healed: AtomicBool,
    began: Instant,
    /// Whether what happens is printed.
    told: bool,
}

impl World {
    pub(crate) fn new((plan, rng): (Plan, Xoshiro256PlusPlus), told: bool) -> Arc<Self> {
        let world = Arc::new(Self {
            plan,
            store: MemoryStore::new(),
            ledger: Mutex::default(),
            rng: Mutex::new(rng),
            serving: Mutex::default(),
            processes: AtomicUsize::new(0),
            restarts: AtomicUsize::new(0),
            healed: AtomicBool::new(false),
            began: Instant::now(),
            told,
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
        let line = BadLine {
            world: Arc::clone(self),
            process: Arc::clone(&process),
        };
        let handler = Handler {
            world: Arc::clone(self),
            process: Arc::clone(&process),
        };
        let channel = JsonPath::new("hook", "$.id").unwrap();
        let channel = channel.conversation("$.chat").unwrap().unverified();
        let (front, worker) = Inbox::new(line, channel)
            .lease(LEASE)
            .store_limit(STORE_LIMIT)
            .attempts(ATTEMPTS)
            .attempt_limit(LEASE * 4)
            .backoff(LEASE / 20, LEASE / 2)
            .look_every(LEASE / 4)
            .wrap(handler)
            .unwrap();
        tokio::spawn(worker.run());
        (process, front)
    }

    /// The process at this place, and its front.
    pub(crate) fn serving(&self, place: usize) -> (Arc<Process>, Served) {
        lock(&self.serving)[place].clone()
    }

    pub(crate) fn befall(self: &Arc<Self>, event: Event) {
        self.note(|| format!("{event:?}"));
        match event {
            Event::Kill(place) => self.replace(place),
            Event::Pause(place, time) => self.serving(place).0.pause(Instant::now() + time),
            Event::RestartStore => {
                self.restarts.fetch_add(1, Ordering::Relaxed);
            }
            Event::Redrive(place) => {
                let line = BadLine {
                    world: Arc::clone(self),
                    process: self.serving(place).0,
                };
                let again_after = way(&mut lock(&self.rng));
                tokio::spawn(redrive(line, again_after));
            }
        }
    }

    fn replace(self: &Arc<Self>, place: usize) {
        let next = self.started();
        let (dead, _) = std::mem::replace(&mut lock(&self.serving)[place], next);
        dead.death.cancel();
    }

    /// Kills the process with this number, if it lives.
    pub(crate) fn kill(self: &Arc<Self>, number: usize) {
        let place = lock(&self.serving)
            .iter()
            .position(|(process, _)| process.number == number);
        if let Some(place) = place {
            self.note(|| format!("process {number} dies of its message"));
            self.replace(place);
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

    /// Undoes all deaths, past every line.
    pub(crate) fn redrive_all(&self) {
        let dead = now(self.store.dead(None, 100)).unwrap();
        let deaths: Vec<Death> = dead.iter().map(|letter| letter.death).collect();
        lock(&self.ledger).redrive(&self.store, &deaths).unwrap();
    }

    /// Lets go of the processes, which hold the world as it holds them. The tasks that are left
    /// go with their runtime.
    pub(crate) fn end(&self) -> Ledger {
        lock(&self.serving).clear();
        std::mem::take(&mut lock(&self.ledger))
    }

    /// How the next run goes.
    pub(crate) fn work(&self) -> Work {
        let mut rng = lock(&self.rng);
        let rng = &mut *rng;
        let plan = &self.plan;
        let slow = rng.random_bool(plan.slowness);
        let takes = LEASE.mul_f64(rng.random_range(0.0..if slow { 2.5 } else { 0.2 }));
        let fails = rng.random_bool(plan.failures);
        let kills = rng.random_bool(plan.poison);
        let end = match (rng.random_range(0..10), way(rng)) {
            _ if self.is_healed() => End::Success,
            _ if kills => End::Kill,
            _ if !fails => End::Success,
            (0, _) => End::Panic,
            (1, _) => End::Error,
            (2, time) => End::Later(time),
            (3..6, _) => End::Never,
            _ => End::Status500,
        };
        Work { takes, end }
    }

    pub(crate) fn apply<T>(
        &self,
        call: impl Fn(&mut Ledger, &MemoryStore) -> Result<T, Error>,
    ) -> Result<T, Error> {
        call(&mut lock(&self.ledger), &self.store)
    }

    pub(crate) fn begins(&self, message: usize, turn: (Line, Token, u32)) {
        lock(&self.ledger).begins(message, turn, &self.plan.chats);
    }

    pub(crate) fn handled(&self, message: usize, token: Token) {
        lock(&self.ledger).handled(message, token);
    }

    pub(crate) fn sent(&self, message: usize) {
        lock(&self.ledger).sent(message);
    }

    pub(crate) fn acked(&self, message: usize) {
        lock(&self.ledger).acked(message);
    }

    pub(crate) fn unfinished(&self) -> Option<usize> {
        lock(&self.ledger).unfinished()
    }

    pub(crate) fn breaks(&self, why: impl Display) {
        lock(&self.ledger).breaks(why);
    }

    pub(crate) fn lasts(&self) -> Duration {
        self.began.elapsed()
    }
}

/// An operator redrives what is dead, and somewhat later, not sure whether it was heard, the same
/// deaths again.
async fn redrive(line: BadLine, again_after: Duration) {
    let Ok(dead) = line.dead(None, 100).await else {
        return;
    };
    let deaths: Vec<Death> = dead.iter().map(|letter| letter.death).collect();
    for _ in 0..2 {
        drop(line.redrive(&deaths).await);
        sleep(again_after).await;
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
