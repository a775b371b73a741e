//! Other processes: this test program again, told by its environment what to do. They say on
//! standard output what the store has acknowledged, a line each.

use std::env;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use tower_idempotency::Error;
use tower_idempotency::store::{Settled, Sight, SqliteStore, Store, Verdict};

use crate::support::{DAY, File, body_of, claim_of, look, record_of};

const ROLE: &str = "STORE_SQLITE_CHILD";
const FILE: &str = "STORE_SQLITE_FILE";

/// Marks a line that is ours among those of the test harness.
const MARK: &str = "> ";

#[test]
#[ignore = "the body of the processes that other tests start"]
fn body() {
    let Ok(role) = env::var(ROLE) else { return };
    let path = PathBuf::from(env::var(FILE).unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut words = role.split(' ');
        match (words.next().unwrap(), words.next()) {
            ("churn", Some(name)) => churn(open(&path), name).await,
            ("race", Some(count)) => race(open(&path), count.parse().unwrap()).await,
            ("once", Some(name)) => once(&open(&path), name).await,
            ("fill", None) => fill(open(&path)).await,
            ("open-read-only", None) => say(&described(&SqliteStore::open(&path).unwrap_err())),
            other => panic!("no such role: {other:?}"),
        }
    });
}

fn open(path: &PathBuf) -> SqliteStore {
    SqliteStore::open(path).unwrap()
}

/// Claims and records, eight at a time, until it is killed.
async fn churn(store: SqliteStore, name: &str) {
    let next = AtomicU64::new(0);
    let one = || async {
        loop {
            let id = format!("{name}-{}", next.fetch_add(1, Ordering::Relaxed));
            once(&store, &id).await;
        }
    };
    tokio::join!(one(), one(), one(), one(), one(), one(), one(), one());
}

/// Claims one key and records it.
async fn once(store: &SqliteStore, id: &str) {
    let Some(Verdict::Run(lease)) = store.claim(&claim_of(&[id])).await.unwrap().pop() else {
        panic!("{id} is not to be run")
    };
    say(&format!("claimed {id} {}", lease.token().number()));
    let settled = store.settle(&[lease.record(record_of(id), DAY)]).await;
    assert_eq!(settled.unwrap(), [Settled::Applied]);
    say(&format!("recorded {id}"));
}

/// Claims the same keys as its rivals do.
async fn race(store: SqliteStore, count: u64) {
    let claim = |i: u64| {
        let store = store.clone();
        tokio::task::spawn(async move { (i, store.claim(&claim_of(&[&i.to_string()])).await) })
    };
    for claimed in (0..count).map(claim).collect::<Vec<_>>() {
        let (i, verdicts) = claimed.await.unwrap();
        match verdicts.unwrap().pop() {
            Some(Verdict::Run(lease)) => say(&format!("claimed {i} {}", lease.token().number())),
            Some(Verdict::Running { .. }) => say(&format!("running {i}")),
            other => panic!("{other:?}"),
        }
    }
}

/// Records until the disk refuses.
async fn fill(store: SqliteStore) {
    for i in 0.. {
        let id = i.to_string();
        let answer = match store.claim(&claim_of(&[&id])).await.map(|mut v| v.pop()) {
            Ok(Some(Verdict::Run(lease))) => {
                store.settle(&[lease.record(record_of(&*id), DAY)]).await
            }
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error),
        };
        match answer {
            Ok(_) => say(&format!("recorded {id}")),
            Err(error) => {
                return say(if error.is_retryable() {
                    "retryable"
                } else {
                    "other"
                });
            }
        }
    }
}

fn described(error: &Error) -> String {
    let kind = if error.is_misconfigured() {
        "misconfigured"
    } else {
        "other"
    };
    format!("{kind} {error}")
}

#[expect(clippy::print_stdout, reason = "this is how the process is heard")]
fn say(line: &str) {
    println!("{MARK}{line}");
}

/// A process in one of the roles, and what it says.
pub(crate) struct Process {
    child: Child,
    pub(crate) lines: Receiver<String>,
}

impl Process {
    pub(crate) fn start(file: &File, role: &str) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["child::body", "--exact", "--ignored", "--nocapture"]);
        Self::run(command, file, role)
    }

    /// Starts a process in which no file may grow beyond 256 KiB, and writing more is an error.
    fn start_in_narrow_space(file: &File) -> Self {
        let mut command = Command::new("sh");
        let script = "trap '' XFSZ; ulimit -f 768; exec \"$0\" \"$@\"";
        command.args(["-c", script]);
        command.arg(env::current_exe().unwrap());
        command.args(["child::body", "--exact", "--ignored", "--nocapture"]);
        Self::run(command, file, "fill")
    }

    /// Starts a process that may not write the file; root may write everything, so it is not root.
    fn start_without_rights(file: &File) -> Self {
        let folder = file.path().parent().unwrap().to_owned();
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(file.path(), Permissions::from_mode(0o444)).unwrap();
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["child::body", "--exact", "--ignored", "--nocapture"]);
        if fs::metadata(file.path()).unwrap().uid() == 0 {
            command.uid(65_534).gid(65_534);
        }
        Self::run(command, file, "open-read-only")
    }

    fn run(mut command: Command, file: &File, role: &str) -> Self {
        command.env(ROLE, role).env(FILE, file.path());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            let lines = output.lines().map_while(Result::ok);
            let ours = lines.filter_map(|line| line.split_once(MARK).map(|(_, l)| l.to_owned()));
            ours.for_each(|line| drop(sender.send(line)));
        });
        Self { child, lines }
    }

    /// Kills it with SIGKILL, and gives what it has said and was not read yet.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.lines.iter().collect()
    }

    /// Waits for its end, and gives what it has said and was not read yet.
    pub(crate) fn end(mut self) -> Vec<String> {
        let lines = self.lines.iter().collect();
        assert!(self.child.wait().unwrap().success());
        lines
    }
}

/// What a process said that has ended by itself.
pub(crate) fn output(file: &File, role: &str) -> Vec<String> {
    let process = match role {
        "fill" => Process::start_in_narrow_space(file),
        "open-read-only" => Process::start_without_rights(file),
        role => Process::start(file, role),
    };
    process.end()
}

/// Checks that what a line of a process says is in the store.
pub(crate) async fn assert_kept(store: &SqliteStore, line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    match (words[0], look(store, words[1]).await) {
        ("recorded", Sight::Done(record)) => assert_eq!(body_of(&record), words[1].as_bytes()),
        // It may have been recorded without the process being told so before its end.
        ("claimed", Sight::Running { .. } | Sight::Done(_)) => {}
        (_, sight) => panic!("{line}, but there is {sight:?}"),
    }
}
