//! A PostgreSQL server of a test's own, to be stopped, restarted and turned read-only.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A server in a scratch folder, on a unix socket. Stopped and removed when dropped.
pub(crate) struct Cluster {
    programs: PathBuf,
    folder: TempDir,
    preload: Option<PathBuf>,
}

/// How a server is stopped.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stop {
    /// Sessions are cut, the log is written out.
    Fast,
    /// As by a crash: the next start recovers from the log.
    Immediate,
}

impl Cluster {
    /// A running server with these settings, each `name = value`.
    pub(crate) fn start(settings: &[&str]) -> Self {
        Self::preloaded(settings, None)
    }

    /// A running server in whose processes a library is loaded first.
    pub(crate) fn preloaded(settings: &[&str], preload: Option<&Path>) -> Self {
        let cluster = Self {
            programs: programs(),
            folder: tempfile::tempdir().unwrap(),
            preload: preload.map(Path::to_owned),
        };
        fs::create_dir(cluster.socket()).unwrap();
        if is_root() {
            succeed(
                Command::new("chown")
                    .args(["-R", "nobody"])
                    .arg(cluster.folder.path()),
            );
        }
        succeed(
            cluster
                .command("initdb")
                .args(["--username=postgres", "--auth=trust", "--encoding=UTF8"])
                .args(["--locale=C", "--no-sync", "--pgdata"])
                .arg(cluster.data()),
        );
        let mut file = fs::read_to_string(cluster.data().join("postgresql.conf")).unwrap();
        let socket = format!("unix_socket_directories = '{}'", cluster.socket().display());
        for setting in ["listen_addresses = ''", &socket].iter().chain(settings) {
            file.push_str(setting);
            file.push('\n');
        }
        fs::write(cluster.data().join("postgresql.conf"), file).unwrap();
        cluster.resume();
        cluster
    }

    /// Starts the server again, after [`stop`](Self::stop).
    pub(crate) fn resume(&self) {
        let mut command = self.command("pg_ctl");
        if let Some(library) = &self.preload {
            command.env("LD_PRELOAD", library);
        }
        succeed(
            command
                .args(["start", "--wait", "--silent", "--log"])
                .arg(self.folder.path().join("log"))
                .arg("--pgdata")
                .arg(self.data()),
        );
    }

    /// Stops the server, and waits until it is stopped.
    pub(crate) fn stop(&self, how: Stop) {
        let mode = match how {
            Stop::Fast => "fast",
            Stop::Immediate => "immediate",
        };
        succeed(
            self.command("pg_ctl")
                .args(["stop", "--wait", "--silent", "--mode", mode, "--pgdata"])
                .arg(self.data()),
        );
    }

    /// Where the server's socket is.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// The URL of its database.
    pub(crate) fn url(&self) -> String {
        url(&self.socket())
    }

    /// The process id of the server.
    pub(crate) fn pid(&self) -> u32 {
        let file = fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        file.lines().next().unwrap().parse().unwrap()
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn command(&self, program: &str) -> Command {
        unprivileged(&self.programs.join(program))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.data().join("postmaster.pid").exists() {
            self.stop(Stop::Immediate);
        }
    }
}

/// The URL of the database `postgres` behind a socket in this folder.
pub(crate) fn url(socket: &Path) -> String {
    let folder = socket.to_str().unwrap().replace('/', "%2F");
    format!("postgres://postgres@{folder}/postgres")
}

/// A command that does not run as root, as servers demand.
pub(crate) fn unprivileged(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"])
        .arg(program);
    command
}

pub(crate) fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout == b"0\n"
}

/// Where the server's programs are: as `./test` says, on the path, or where Debian keeps them.
fn programs() -> PathBuf {
    let named = std::env::var_os("PG_BIN").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let debian = debian.map(|version| version.unwrap().path().join("bin"));
    named
        .into_iter()
        .chain(std::env::split_paths(&path))
        .chain(debian)
        .find(|folder| folder.join("initdb").exists() && folder.join("pg_ctl").exists())
        .expect("PostgreSQL's initdb and pg_ctl are not there: run ./test")
}

fn succeed(command: &mut Command) {
    let output = command.stdin(Stdio::null()).stderr(Stdio::piped());
    // The server keeps its parent's output open: it must not be a pipe that is read to its end.
    let status = output
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
        .wait_with_output();
    let status = status.unwrap();
    assert!(
        status.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&status.stderr)
    );
}
