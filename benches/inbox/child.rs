//! One of several processes: accepts, handles, and prints what it did.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tower_idempotency::store::PostgresStore;

use crate::jobs::Jobs;
use crate::message;
use crate::worker::{Seen, Worker};

const TASK: &str = "INBOX_BENCH_TASK";

/// What a process is to do.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) url: String,
    pub(crate) by: By,
    /// How long messages come.
    pub(crate) time: Duration,
    /// How many senders send one after the other.
    pub(crate) senders: usize,
    /// How many messages a second come beside those, each at its own time.
    pub(crate) rate: u32,
    /// Whether it goes on after that until nothing more comes.
    pub(crate) drain: bool,
    pub(crate) handler: Duration,
    /// The pause of a worker that found nothing.
    pub(crate) idle: Duration,
    /// Whether there is a hot conversation.
    pub(crate) hot: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Jobs,
    Store,
}

/// What processes did, all in all.
#[derive(Default)]
pub(crate) struct Did {
    pub(crate) accepted: u64,
    pub(crate) handled: u64,
    /// From the first message to the last one handled, in the process that took longest.
    pub(crate) time: Duration,
    pub(crate) latencies: BTreeMap<u64, u64>,
}

/// The conversation that is busier than others.
pub(crate) const HOT: &str = "hot";

impl Task {
    /// The task for which this process was started.
    pub(crate) fn given() -> Option<Self> {
        let text = std::env::var(TASK).ok()?;
        let part: Vec<&str> = text.split(' ').collect();
        let millis = |at: usize| Duration::from_millis(part[at].parse().unwrap());
        Some(Self {
            url: part[0].to_owned(),
            by: if part[1] == "Jobs" {
                By::Jobs
            } else {
                By::Store
            },
            time: millis(2),
            senders: part[3].parse().unwrap(),
            rate: part[4].parse().unwrap(),
            drain: part[5] == "true",
            handler: millis(6),
            idle: millis(7),
            hot: part[8] == "true",
        })
    }

    /// Starts a process with it.
    pub(crate) fn start(&self) -> Child {
        let text = format!(
            "{} {:?} {} {} {} {} {} {} {}",
            self.url,
            self.by,
            self.time.as_millis(),
            self.senders,
            self.rate,
            self.drain,
            self.handler.as_millis(),
            self.idle.as_millis(),
            self.hot
        );
        Command::new(std::env::current_exe().unwrap())
            .env(TASK, text)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

impl Did {
    /// Waits for processes, and adds up what they printed.
    pub(crate) fn by(children: Vec<Child>) -> Self {
        let mut all = Self::default();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "a process failed");
            let text = String::from_utf8(output.stdout).unwrap();
            let mut numbers = text.split_whitespace().map(|n| n.parse::<u64>().unwrap());
            all.accepted += numbers.next().unwrap();
            all.handled += numbers.next().unwrap();
            all.time = all.time.max(Duration::from_micros(numbers.next().unwrap()));
            while let (Some(age), Some(count)) = (numbers.next(), numbers.next()) {
                *all.latencies.entry(age).or_default() += count;
            }
        }
        all
    }

    /// The latency of which this share is no longer.
    pub(crate) fn latency(&self, share: f64) -> Duration {
        let all: u64 = self.latencies.values().sum();
        let mut below = 0;
        for (age, count) in &self.latencies {
            below += count;
            if below as f64 >= all as f64 * share {
                return Duration::from_micros(*age);
            }
        }
        Duration::ZERO
    }
}

/// Does it, in a process of its own.
pub(crate) fn run(task: &Task) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let began = Instant::now();
        let (accepted, seen) = match task.by {
            By::Jobs => with_jobs(task).await,
            By::Store => with_store(task).await,
        };
        let handled = seen.handled.load(Ordering::Relaxed);
        let last = seen.last().unwrap_or(began);
        print!("{accepted} {handled} {}", (last - began).as_micros());
        for (age, count) in seen.latencies() {
            print!(" {age} {count}");
        }
    });
}

async fn with_jobs(task: &Task) -> (u64, Arc<Seen>) {
    let jobs = Jobs::open(&task.url);
    let (seen, stop) = (Arc::<Seen>::default(), Arc::<AtomicBool>::default());
    let mut workers = JoinSet::new();
    for _ in 0..2 {
        workers.spawn(
            jobs.clone()
                .work(Arc::clone(&seen), Arc::clone(&stop), task.idle),
        );
    }
    let accept = move || {
        let jobs = jobs.clone();
        async move { jobs.accept(&message::fresh(message::CONVERSATIONS)).await }
    };
    let accepted = send(task, accept).await;
    end(task, &seen, &stop).await;
    workers.join_all().await;
    (accepted, seen)
}

async fn with_store(task: &Task) -> (u64, Arc<Seen>) {
    let store = PostgresStore::connect(&task.url).await.unwrap();
    let hot = task.hot.then(|| message::of(HOT).line());
    let worker = Worker::new(store, task.handler, hot);
    let stop = Arc::<AtomicBool>::default();
    let mut workers = JoinSet::new();
    workers.spawn(worker.clone().work(Arc::clone(&stop), task.idle));
    let accepting = worker.clone();
    let accept = move || {
        let worker = accepting.clone();
        async move { worker.accept(message::fresh(message::CONVERSATIONS)).await }
    };
    let accepted = send(task, accept).await;
    end(task, &worker.seen, &stop).await;
    workers.join_all().await;
    (accepted, worker.seen)
}

/// Sends for the time, and counts.
async fn send<F>(task: &Task, accept: impl Fn() -> F + Clone + Send + 'static) -> u64
where
    F: Future<Output = ()> + Send,
{
    let (accepted, began) = (Arc::<AtomicU64>::default(), Instant::now());
    let mut tasks = JoinSet::new();
    let time = task.time;
    for _ in 0..task.senders {
        let (accept, accepted) = (accept.clone(), Arc::clone(&accepted));
        tasks.spawn(async move {
            while began.elapsed() < time {
                accept().await;
                accepted.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let mut next = began;
    while task.rate > 0 && began.elapsed() < time {
        tokio::time::sleep_until(next.into()).await;
        let step = f64::from(task.rate).recip() * rand::random_range(0.5..1.5);
        next += Duration::from_secs_f64(step);
        let (accept, accepted) = (accept.clone(), Arc::clone(&accepted));
        tasks.spawn(async move {
            accept().await;
            accepted.fetch_add(1, Ordering::Relaxed);
        });
        while tasks.try_join_next().is_some() {}
    }
    tasks.join_all().await;
    accepted.load(Ordering::Relaxed)
}

/// Stops the workers, at the end of the time or when nothing more comes.
async fn end(task: &Task, seen: &Seen, stop: &AtomicBool) {
    const QUIET: Duration = Duration::from_millis(200);
    let is_busy = || seen.last().is_none_or(|at| at.elapsed() < QUIET);
    while task.drain && is_busy() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    stop.store(true, Ordering::Relaxed);
}
