//! A process that is really killed while its handler runs.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use axum::body::Body;
use http::{Request, Response};
use tokio::time::sleep;
use tower::{BoxError, Layer, ServiceExt, service_fn};
use tower_idempotency::channel::IdempotencyKey;
use tower_idempotency::store::{End, Resolved, SqliteStore, connect, settle_unknown};
use tower_idempotency::{IdempotencyLayer, Key, Known, RequestBody};

use crate::app::{App, is_replayed, is_unknown, parking_in, send};

const FILE: &str = "UNKNOWN_TEST_FILE";
const RUNS: &str = "the handler runs";

/// A lease that a test waits for, and repeats that wait longer.
fn layer(file: &Path) -> IdempotencyLayer<SqliteStore, IdempotencyKey> {
    parking_in(SqliteStore::open(file).unwrap())
        .lease(Duration::from_millis(500))
        .wait(Duration::from_mins(1))
}

/// Claims a message and does not come to its end.
#[tokio::test]
#[ignore = "a process that other tests start"]
#[expect(clippy::print_stdout, reason = "this is how the test is told")]
async fn claims_and_hangs() {
    let Ok(file) = std::env::var(FILE) else {
        return;
    };
    let handler = service_fn(async |_: Request<RequestBody<Body>>| {
        println!("{RUNS}");
        // Longer than the test, and not for ever if nobody is left to kill it.
        sleep(Duration::from_mins(2)).await;
        Ok::<_, BoxError>(Response::new(Body::empty()))
    });
    let service = layer(Path::new(&file)).layer(handler);
    drop(service.oneshot(send("k", "")).await);
}

/// Ends the process when dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Has a process claim the message, and kills it with SIGKILL while its handler runs.
fn kill_a_run(file: &Path) {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args([
            "killed::claims_and_hangs",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env(FILE, file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let process = Killed(process);
    assert!(lines.any(|line| line.unwrap().contains(RUNS)));
    drop(process);
}

/// Field cases B08, P61.
#[tokio::test]
async fn a_repeat_is_told_when_the_lease_of_the_killed_process_has_lapsed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chat.db");
    kill_a_run(&file);
    let app = App::new(layer(&file));
    is_unknown(app.send("k", "done").await).await;
    is_unknown(app.send("k", "done").await).await;
    assert_eq!(app.runs(), 0);

    let key = Key::new("web", "alice", &["k"]);
    let settled = app.layer.settle_unknown(&key, Known::Done).await;
    assert_eq!(settled.unwrap(), Resolved::Applied);
    assert!(is_replayed(&app.send("k", "done").await));
    assert_eq!(app.runs(), 0);
}

/// The one key whose outcome is unknown, by the query of the docs.
fn found(file: &Path) -> Key {
    let rows = rusqlite::Connection::open(file).unwrap();
    let query = "SELECT channel, scope, id, attempt, claimed_at, leased_until FROM idempotency
        WHERE state = 'running' AND leased_until <= datetime('now')";
    rows.query_one(query, [], |row| {
        let text = |at| row.get::<_, String>(at);
        Ok(Key::restored(&text(0)?, &text(1)?, &text(2)?))
    })
    .unwrap()
}

#[tokio::test]
async fn another_process_settles_it_by_the_file_and_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chat.db");
    kill_a_run(&file);
    let app = App::new(layer(&file));
    is_unknown(app.send("k", "done").await).await;

    let key = found(&file);
    let url = format!("sqlite:{}", file.display());
    let store = connect(&url).await.unwrap();
    let settled = settle_unknown(&store, &key, End::Release).await;
    assert_eq!(settled.unwrap(), Resolved::Applied);
    assert_eq!(app.send("k", "done").await.status(), 201);
    assert_eq!(app.runs(), 1);
}
