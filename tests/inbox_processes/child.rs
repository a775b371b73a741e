//! A process with two inboxes on one store, behind an HTTP server: this very program again.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Extension;
use axum::http::StatusCode;
use axum::routing::post;
use tokio::net::TcpListener;
use tokio::time::sleep;
use tower_idempotency::channel::JsonPath;
use tower_idempotency::inbox::{Inbox, Received};
use tower_idempotency::store::{BoxStore, connect};
use tower_idempotency::verify::Unverified;

use crate::journal::{Event, Journal};

const URL: &str = "INBOX_TEST_URL";
const JOURNAL: &str = "INBOX_TEST_JOURNAL";
const OPTIONS: &str = "INBOX_TEST_OPTIONS";

/// A process with two inboxes; killed when dropped.
pub(crate) struct Server {
    process: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts it, and waits until it listens. `options` are words that [`serves`] knows.
    pub(crate) fn start(url: &str, journal: &Path, options: &str) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["child::serves", "--exact", "--ignored", "--nocapture"])
            .env(URL, url)
            .env(JOURNAL, journal)
            .env(OPTIONS, options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let address = lines
            .find_map(|line| line.unwrap().split("listens on ").nth(1)?.parse().ok())
            .unwrap();
        // What it prints later is read, so that it never waits for us.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, address }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Kills it with SIGKILL, and notes it.
    pub(crate) fn kill(&mut self, journal: &Journal) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        journal.write(&Event::Killed(self.id()));
    }

    /// Waits until it has ended by itself, and notes it.
    pub(crate) async fn ended(&mut self, journal: &Journal) {
        while self.process.try_wait().unwrap().is_none() {
            sleep(Duration::from_millis(10)).await;
        }
        journal.write(&Event::Killed(self.id()));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

pub(crate) fn channel() -> Unverified<JsonPath> {
    JsonPath::new("hook", "$.id")
        .unwrap()
        .conversation("$.chat")
        .unwrap()
        .required()
        .unverified()
}

/// Options: `no-worker` accepts only, `attempts-N` sets how many there are, `lease-N` how many
/// milliseconds a killed process's turns last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a process that other tests start"]
async fn serves() {
    let Ok(url) = std::env::var(URL) else { return };
    let options = std::env::var(OPTIONS).unwrap();
    let journal = std::env::var(JOURNAL).unwrap();
    let journal = Arc::new(Journal::open(Path::new(&journal)));
    let store = connect(&url).await.unwrap();
    let mut front = None;
    for _ in 0..2 {
        let handler = Router::new()
            .route("/hook", post(handle))
            .layer(Extension(Arc::clone(&journal)));
        let (this, worker) = inbox(&store, &options).wrap(handler).unwrap();
        front = Some(this);
        if !options.contains("no-worker") {
            tokio::spawn(worker.run());
        }
    }
    let app = Router::new().route_service("/hook", front.unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("listens on {}", listener.local_addr().unwrap());
    axum::serve(listener, app).await.unwrap();
}

fn inbox(store: &BoxStore, options: &str) -> Inbox<BoxStore, Unverified<JsonPath>> {
    let number = |name: &str, default: u32| {
        let mut words = options.split(' ');
        let found = words.find_map(|word| word.strip_prefix(name)?.parse().ok());
        found.unwrap_or(default)
    };
    Inbox::new(store.clone(), channel())
        // Longer than a database takes to restart on a loaded machine: a message whose worker
        // cannot reach the store for a whole lease may be handled again.
        .lease(Duration::from_millis(number("lease-", 10_000).into()))
        .look_every(Duration::from_millis(100))
        .backoff(Duration::from_millis(20), Duration::from_millis(100))
        .attempts(number("attempts-", 1_000))
}

/// Notes its begin and its end. `poison-…` kills its process, every time; `slow-…` takes its time.
async fn handle(
    Extension(journal): Extension<Arc<Journal>>,
    Extension(received): Extension<Received>,
) -> StatusCode {
    let id = received.delivery().key().id().to_owned();
    let process = std::process::id();
    journal.write(&Event::Began(id.clone(), process, received.attempt()));
    let mut run = Running {
        journal,
        id,
        has_ended: false,
    };
    if run.id.starts_with("poison") {
        kill_self();
    }
    let time = if run.id.starts_with("slow") {
        60_000
    } else {
        1
    };
    sleep(Duration::from_millis(time)).await;
    run.end();
    StatusCode::OK
}

fn kill_self() {
    let me = std::process::id().to_string();
    let killed = Command::new("kill").args(["-KILL", &me]).status();
    panic!("alive after SIGKILL: {killed:?}");
}

/// A handler that runs; notes it if it is dropped.
struct Running {
    journal: Arc<Journal>,
    id: String,
    has_ended: bool,
}

impl Running {
    fn end(&mut self) {
        self.has_ended = true;
        let event = Event::Ended(self.id.clone(), std::process::id());
        self.journal.write(&event);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.has_ended {
            let event = Event::Cut(self.id.clone(), std::process::id());
            self.journal.write(&event);
        }
    }
}
