//! One of several processes: accepts, handles, and prints what it did.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write, stdin};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
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
    /// Processor time that was used before all began.
    pub(crate) before: Duration,
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

    /// Starts a process with it, and waits until it has warmed up.
    pub(crate) fn start(&self) -> Process {
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
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env(TASK, text)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut String::new()).unwrap();
        Process { child, output }
    }
}

/// A process that waits for its beginning.
pub(crate) struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Did {
    /// Lets processes begin, waits for them, and adds up what they printed.
    pub(crate) fn by(mut processes: Vec<Process>) -> Self {
        let mut all = Self::default();
        for process in &mut processes {
            let mut input = process.child.stdin.take().unwrap();
            input.write_all(b"begin\n").unwrap();
        }
        for mut process in processes {
            let mut text = String::new();
            process.output.read_to_string(&mut text).unwrap();
            assert!(process.child.wait().unwrap().success(), "a process failed");
            let mut numbers = text.split_whitespace().map(|n| n.parse::<u64>().unwrap());
            all.accepted += numbers.next().unwrap();
            all.handled += numbers.next().unwrap();
            all.time = all.time.max(Duration::from_micros(numbers.next().unwrap()));
            all.before += Duration::from_micros(numbers.next().unwrap());
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
        let (accepted, seen, begun) = match task.by {
            By::Jobs => with_jobs(task).await,
            By::Store => with_store(task).await,
        };
        let handled = seen.handled.load(Ordering::Relaxed);
        let time = seen.last().map_or(Duration::ZERO, |last| last - begun.at);
        let (time, before) = (time.as_micros(), begun.used.as_micros());
        print!("{accepted} {handled} {time} {before}");
        for (age, count) in seen.latencies() {
            print!(" {age} {count}");
        }
    });
}

/// When it began, and the processor time that was used by then.
struct Begun {
    at: Instant,
    used: Duration,
}

/// Says that it is ready, and waits to be told to begin.
async fn begin(seen: &Seen) -> Begun {
    // What the warming up left is handled first.
    while seen.last().is_some_and(|at| at.elapsed() < QUIET) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    seen.forget();
    println!("ready");
    stdin().read_line(&mut String::new()).unwrap();
    Begun {
        at: Instant::now(),
        used: ProcessTime::now().as_duration(),
    }
}

/// How long a process warms up: its connections are made, and its statements planned.
const WARM: Duration = Duration::from_millis(500);

const QUIET: Duration = Duration::from_millis(200);

async fn with_jobs(task: &Task) -> (u64, Arc<Seen>, Begun) {
    let jobs = Jobs::open(&task.url);
    let (seen, stop) = (Arc::<Seen>::default(), Arc::<AtomicBool>::default());
    let work = |jobs: &Jobs| {
        jobs.clone()
            .work(Arc::clone(&seen), Arc::clone(&stop), task.idle)
    };
    let sending = jobs.clone();
    let accept = move || {
        let jobs = sending.clone();
        async move { jobs.accept(&message::fresh(message::CONVERSATIONS)).await }
    };
    let mut workers = JoinSet::new();
    if !task.drain {
        workers.spawn(work(&jobs));
        workers.spawn(work(&jobs));
        send(task, WARM, accept.clone()).await;
    }
    let begun = begin(&seen).await;
    if task.drain {
        workers.spawn(work(&jobs));
        workers.spawn(work(&jobs));
    }
    let accepted = send(task, task.time, accept).await;
    end(task, &seen, &stop).await;
    workers.join_all().await;
    (accepted, seen, begun)
}

async fn with_store(task: &Task) -> (u64, Arc<Seen>, Begun) {
    let store = PostgresStore::connect(&task.url).await.unwrap();
    let hot = task.hot.then(|| message::of(HOT).line());
    let worker = Worker::new(store, task.handler, hot);
    let stop = Arc::<AtomicBool>::default();
    let accepting = worker.clone();
    let accept = move || {
        let worker = accepting.clone();
        async move { worker.accept(message::fresh(message::CONVERSATIONS)).await }
    };
    let mut workers = JoinSet::new();
    if !task.drain {
        send(task, WARM, accept.clone()).await;
    }
    let begun = begin(&worker.seen).await;
    workers.spawn(worker.clone().work(Arc::clone(&stop), task.idle));
    let accepted = send(task, task.time, accept).await;
    end(task, &worker.seen, &stop).await;
    workers.join_all().await;
    (accepted, worker.seen, begun)
}

/// Sends for the time, and counts.
async fn send<F>(
    task: &Task,
    time: Duration,
    accept: impl Fn() -> F + Clone + Send + 'static,
) -> u64
where
    F: Future<Output = ()> + Send,
{
    let (accepted, began) = (Arc::<AtomicU64>::default(), Instant::now());
    let mut tasks = JoinSet::new();
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
    let is_busy = || seen.last().is_none_or(|at| at.elapsed() < QUIET);
    while task.drain && is_busy() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    stop.store(true, Ordering::Relaxed);
}
