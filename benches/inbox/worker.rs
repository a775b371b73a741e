//! A worker at the level of the store: takes turns, handles their messages, reports.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tower_idempotency::store::{
    Accepted, Arrival, Ended, Line, Onward, PostgresStore, Queue, Report, Then, Turn, TurnHold,
    Waiting,
};

use crate::message;

pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// How many turns a process has at once.
const TURNS: usize = 2000;

/// What was handled, and how long after it was sent.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) handled: AtomicU64,
    last: Mutex<Option<Instant>>,
    latencies: Mutex<BTreeMap<u64, u64>>,
}

impl Seen {
    pub(crate) fn note(&self, raw: &[u8]) {
        self.handled.fetch_add(1, Ordering::Relaxed);
        *self.last.lock().unwrap() = Some(Instant::now());
        let age = u64::try_from(message::age(raw).as_micros()).unwrap();
        // Within 1 %: three digits.
        let step = 10_u64.pow(age.max(1).ilog10().saturating_sub(2));
        *self
            .latencies
            .lock()
            .unwrap()
            .entry(age / step * step)
            .or_default() += 1;
    }

    /// As if nothing had been handled.
    pub(crate) fn forget(&self) {
        self.handled.store(0, Ordering::Relaxed);
        *self.last.lock().unwrap() = None;
        self.latencies.lock().unwrap().clear();
    }

    /// When the last one was handled.
    pub(crate) fn last(&self) -> Option<Instant> {
        *self.last.lock().unwrap()
    }

    /// Each latency in microseconds, and how often it was seen.
    pub(crate) fn latencies(&self) -> BTreeMap<u64, u64> {
        self.latencies.lock().unwrap().clone()
    }
}

#[derive(Clone)]
pub(crate) struct Worker {
    store: PostgresStore,
    pub(crate) seen: Arc<Seen>,
    handler: Duration,
    /// The line whose messages do not count.
    hot: Option<Line>,
    turns: Arc<Semaphore>,
}

impl Worker {
    pub(crate) fn new(store: PostgresStore, handler: Duration, hot: Option<Line>) -> Self {
        Self {
            store,
            seen: Arc::default(),
            handler,
            hot,
            turns: Arc::new(Semaphore::new(TURNS)),
        }
    }

    /// Accepts a message. If its line begins with it, it is handled here, and now.
    pub(crate) async fn accept(&self, arrival: Arrival) {
        let permit = Arc::clone(&self.turns).try_acquire_owned().ok();
        let lease = permit.is_some().then_some(LEASE);
        let arrivals = [arrival];
        let accepted = self.store.accept(&arrivals, lease).await.unwrap();
        let [arrival] = arrivals;
        if let Accepted::New {
            place,
            turn: Some(token),
        } = accepted[0]
            && let Some(permit) = permit
        {
            let hold = TurnHold::new(arrival.line(), token);
            let message = Waiting::new(place, SystemTime::UNIX_EPOCH, arrival.raw);
            let turn = Turn::new(hold, Duration::ZERO, vec![message]);
            #[expect(clippy::disallowed_methods, reason = "ends with its line")]
            tokio::spawn(self.clone().end(turn, permit));
        }
    }

    /// Takes what is due until it is told to stop: at once while there is more, else after `idle`.
    pub(crate) async fn work(self, stop: Arc<AtomicBool>, idle: Duration) {
        let mut handlers = JoinSet::new();
        while !stop.load(Ordering::Relaxed) {
            let turns = self.store.take(64, 16, LEASE).await.unwrap();
            let is_idle = turns.is_empty();
            for turn in turns {
                let permit = Arc::clone(&self.turns).acquire_owned().await.unwrap();
                handlers.spawn(self.clone().end(turn, permit));
            }
            while handlers.try_join_next().is_some() {}
            if is_idle {
                tokio::time::sleep(idle).await;
            }
        }
        handlers.join_all().await;
    }

    /// Handles a line's messages to their end, each in its turn. What was handled is reported when
    /// nothing is left of what was read.
    async fn end(self, turn: Turn, _permit: OwnedSemaphorePermit) {
        let (hold, mut messages) = (turn.hold, turn.messages);
        while !messages.is_empty() {
            let mut reports = Vec::with_capacity(messages.len());
            for message in &messages {
                self.handle(hold, message).await;
                reports.push(Report::new(hold, message.place, Ended::Done, Then::GoOn));
            }
            if let Some(last) = reports.last_mut() {
                last.then = Then::Read(16);
            }
            match self.store.report(&reports).await.unwrap().pop() {
                Some(Onward::Next(next)) => messages = next,
                Some(Onward::Ended) => return,
                other => panic!("a turn was lost: {other:?}"),
            }
        }
    }

    async fn handle(&self, hold: TurnHold, message: &Waiting) {
        if !self.handler.is_zero() {
            tokio::time::sleep(self.handler).await;
        }
        if self.hot != Some(hold.line) {
            self.seen.note(&message.raw);
        }
    }
}
