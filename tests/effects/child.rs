//! A chat server as a process: this very program again.

use std::future::poll_fn;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::stream;
use tokio::net::TcpListener;
use tower_idempotency::channel::{IdempotencyKey, Scope};
use tower_idempotency::effects::{Effect, Outbox};
use tower_idempotency::store::connect;
use tower_idempotency::{BoxError, Claimed, Error, IdempotencyLayer};

use crate::tables::Chat;

const URL: &str = "EFFECTS_TEST_URL";
const FOLDER: &str = "EFFECTS_TEST_FOLDER";
const OPTIONS: &str = "EFFECTS_TEST_OPTIONS";

/// Where a process dies, once: the key of the message names the point.
pub(crate) const POINTS: [&str; 7] = [
    "before-claim",
    "after-claim",
    "in-handler",
    "before-commit",
    "after-commit",
    "before-effect",
    "after-effect",
];

/// A process that serves; killed when dropped.
pub(crate) struct Server {
    process: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts it, and waits until it listens. `options`: `apart` for handlers whose writes are in a
    /// transaction of their own.
    pub(crate) fn start(url: &str, folder: &Path, options: &str) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["child::serves", "--exact", "--ignored", "--nocapture"])
            .env(URL, url)
            .env(FOLDER, folder)
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

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        drop(self.process.kill());
        self.process.wait().unwrap();
    }

    /// `STOP` or `CONT`.
    pub(crate) fn signal(&self, signal: &str) {
        let id = self.process.id().to_string();
        let sent = Command::new("kill")
            .args([&format!("-{signal}"), &id])
            .status();
        assert!(sent.unwrap().success());
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.process.try_wait().unwrap().is_some()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a process that other tests start"]
async fn serves() {
    let Ok(url) = std::env::var(URL) else { return };
    let options = std::env::var(OPTIONS).unwrap();
    let crashes = Crashes(std::env::var(FOLDER).unwrap().into());
    let store = connect(&url).await.unwrap();
    let chat = Arc::new(Chat::open(&url));
    let outbox = Outbox::new(&store)
        .unwrap()
        .lease(LEASE)
        .attempts(1_000)
        .backoff(Duration::from_millis(20), Duration::from_millis(100))
        .look_every(Duration::from_millis(50));
    let (notified, dies) = (Arc::clone(&chat), crashes.clone());
    let worker =
        outbox.each(move |effect: Effect| async move { notify(&notified, &dies, &effect).await });
    tokio::spawn(worker.unwrap().run());
    let (written, dies) = (Arc::clone(&chat), crashes.clone());
    let is_apart = options.contains("apart");
    let handler = move |claimed: Claimed| async move {
        let answered = handle(&written, &dies, &claimed, is_apart).await;
        answered.unwrap_or_else(|error| {
            println!("failed: {error} {:?}", std::error::Error::source(&error));
            StatusCode::SERVICE_UNAVAILABLE.into_response()
        })
    };
    let (inner, outer) = (crashes.clone(), crashes);
    let channel = IdempotencyKey::scoped_by(Scope::header("x-user"));
    let layer = IdempotencyLayer::new(store, channel)
        .lease(LEASE)
        .wait(Duration::from_millis(500));
    let app = Router::new()
        .route("/messages", post(handler))
        .layer(from_fn(move |request: Request, next: Next| {
            inner.die(&key(request.headers()), "after-claim");
            next.run(request)
        }))
        .layer(layer)
        .layer(from_fn(move |request: Request, next: Next| {
            let (outer, key) = (outer.clone(), key(request.headers()));
            outer.die(&key, "before-claim");
            async move {
                let response = next.run(request).await;
                outer.die(&key, "after-commit");
                response
            }
        }));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("listens on {}", listener.local_addr().unwrap());
    axum::serve(listener, app).await.unwrap();
}

/// How long a killed process holds a message.
pub(crate) const LEASE: Duration = Duration::from_secs(1);

fn key(headers: &HeaderMap) -> String {
    let key = headers.get("idempotency-key");
    key.map_or_else(String::new, |key| key.to_str().unwrap().to_owned())
}

/// Inserts the message, bumps the counter, and has one notification sent.
async fn handle(
    chat: &Chat,
    dies: &Crashes,
    claimed: &Claimed,
    is_apart: bool,
) -> Result<Response, Error> {
    let message = claimed.messages().first();
    let key = message.map_or_else(String::new, |message| message.key().id().to_owned());
    if is_apart {
        chat.write_apart(&key).await?;
        chat.notify_apart(&key).await?;
        // So that whoever is killed or paused has some that are written and not recorded.
        tokio::time::sleep(Duration::from_millis(150)).await;
    } else {
        chat.write(claimed, &key).await?;
        claimed.enqueue("notify", key.clone())?;
    }
    dies.die(&key, "in-handler");
    // The layer reads the body after the handler has returned, and commits then.
    let (dies, body) = (dies.clone(), Bytes::from(format!("stored {key}")));
    let before_commit = poll_fn(move |_| {
        dies.die(&key, "before-commit");
        Poll::Ready(())
    });
    let body = stream::once(async move {
        before_commit.await;
        Ok::<_, BoxError>(body)
    });
    Ok((StatusCode::CREATED, Body::from_stream(body)).into_response())
}

/// A call elsewhere, which is noted with its key, and a write that is committed with the effect.
async fn notify(chat: &Chat, dies: &Crashes, effect: &Effect) -> Result<(), BoxError> {
    let key = String::from_utf8(effect.payload().to_vec())?;
    dies.die(&key, "before-effect");
    dies.note(&format!("{key} {}", effect.step_key("push")));
    chat.notify(effect.claimed(), &key).await?;
    dies.die(&key, "after-effect");
    Ok(())
}

/// Kills the process at a point, once for each point.
#[derive(Clone)]
struct Crashes(PathBuf);

impl Crashes {
    fn die(&self, key: &str, point: &str) {
        if key == point && std::fs::create_dir(self.0.join(point)).is_ok() {
            let me = std::process::id().to_string();
            let killed = Command::new("kill").args(["-KILL", &me]).status();
            panic!("alive after SIGKILL: {killed:?}");
        }
    }

    /// What a system elsewhere was told.
    fn note(&self, call: &str) {
        let journal = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.0.join("calls"));
        writeln!(journal.unwrap(), "{call}").unwrap();
    }
}
