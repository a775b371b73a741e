//! The example's server as a child process, on a file and a port that outlive it.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::http;

/// Long enough for a loaded machine; reached only when something hangs.
const PATIENCE: Duration = Duration::from_mins(1);

/// A chat server with a file of its own.
pub(crate) struct Server {
    folder: TempDir,
    settings: Vec<(&'static str, String)>,
    address: SocketAddr,
    process: Process,
}

struct Process {
    child: Child,
    /// Kept open: a server whose output nobody reads would end at its next line.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Server {
    /// Starts a server on a free port. `settings` are environment variables.
    pub(crate) async fn start(settings: &[(&'static str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings: Vec<(&'static str, String)> = settings
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect();
        let (process, address) = spawn(folder.path(), &settings, "127.0.0.1:0").await;
        Self {
            folder,
            settings,
            address,
            process,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn file(&self) -> PathBuf {
        file_in(self.folder.path())
    }

    /// SIGKILL: nothing of the process runs any more when this returns.
    pub(crate) async fn kill(&mut self) {
        self.process.child.kill().await.unwrap();
    }

    /// What Ctrl-C sends; gives how the process ended.
    pub(crate) async fn interrupt(&mut self) -> ExitStatus {
        let id = self.process.child.id().unwrap().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status().await;
        assert!(sent.unwrap().success());
        timeout(PATIENCE, self.process.child.wait())
            .await
            .unwrap()
            .unwrap()
    }

    /// Starts the server again, on the same file and the same port.
    pub(crate) async fn restart(&mut self) {
        let address = self.address.to_string();
        let (process, found) = spawn(self.folder.path(), &self.settings, &address).await;
        assert_eq!(found, self.address);
        self.process = process;
    }

    /// The JSON at a path.
    pub(crate) async fn read(&self, path: &str) -> Value {
        let request = http::get(path);
        let response = http::exchange(self.address, &request).await.unwrap();
        assert_eq!(response.status, 200, "{path}");
        serde_json::from_slice(&response.body).unwrap()
    }

    /// One of the numbers at `/stats`.
    pub(crate) async fn count(&self, what: &str) -> u64 {
        self.read("/stats").await[what].as_u64().unwrap()
    }
}

async fn spawn(
    folder: &Path,
    settings: &[(&'static str, String)],
    address: &str,
) -> (Process, SocketAddr) {
    let mut child = Command::new(executable())
        .env_remove("DATABASE_URL")
        .env_remove("UNPROTECTED")
        .env("ADDR", address)
        .env("CHAT_DB", file_in(folder))
        .envs(settings.iter().map(|(name, value)| (name, value)))
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap();
    let first = first.expect("the server ended before it listened");
    let found = first.strip_prefix("listening on http://").unwrap();
    let process = Process {
        child,
        _output: lines,
    };
    (process, found.parse().unwrap())
}

fn file_in(folder: &Path) -> PathBuf {
    folder.join("chat.db")
}

/// The built example, which must be as new as its sources.
fn executable() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().unwrap().parent().unwrap();
    let built = profile.join("examples").join("chat");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = ["src", "examples/chat", "web"].map(|folder| root.join(folder));
    let newest = sources.iter().map(|folder| changed(folder)).max();
    let fresh = fs::metadata(&built)
        .and_then(|it| it.modified())
        .is_ok_and(|at| Some(at) >= newest);
    assert!(
        fresh,
        "{} is missing or old: cargo build --example chat",
        built.display()
    );
    built
}

fn changed(path: &Path) -> SystemTime {
    let here = fs::metadata(path).unwrap();
    if here.is_file() {
        return here.modified().unwrap();
    }
    fs::read_dir(path)
        .unwrap()
        .map(|entry| changed(&entry.unwrap().path()))
        .max()
        .unwrap_or(SystemTime::UNIX_EPOCH)
}
