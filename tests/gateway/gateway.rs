//! The gateway as a child process, with a file and a store of its own.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, SystemTime};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// Long enough for a loaded machine; reached only when something hangs.
const PATIENCE: Duration = Duration::from_mins(1);

const SECRET: &str = "the app secret";

/// A running gateway.
pub(crate) struct Gateway {
    pub(crate) address: SocketAddr,
    pub(crate) metrics: SocketAddr,
    folder: TempDir,
    process: Child,
    /// Kept open: a gateway whose output nobody reads would end at its next line.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Gateway {
    /// A gateway with WhatsApp's webhooks, a web chat, and all else streaming through.
    pub(crate) async fn before(upstream: SocketAddr) -> Self {
        Self::with(&format!(
            r#"
            [[route]]
            path = "/webhooks/whatsapp"
            upstream = "http://{upstream}"
            channel = "whatsapp"
            secret_env = "APP_SECRET"

            [[route]]
            path = "/chat"
            upstream = "http://{upstream}"
            channel = "idempotency-key"
            scope = {{ header = "x-user" }}
            required = true
            timeout = "2s"

            [[route]]
            path = "/"
            upstream = "http://{upstream}"
            "#
        ))
        .await
    }

    /// A gateway with these routes.
    pub(crate) async fn with(routes: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let head = "listen = \"127.0.0.1:0\"\nmetrics = \"127.0.0.1:0\"\n";
        fs::write(
            folder.path().join("gateway.toml"),
            format!("{head}{routes}"),
        )
        .unwrap();
        Self::start(folder).await
    }

    async fn start(folder: TempDir) -> Self {
        let database = format!("sqlite:{}", folder.path().join("keys.db").display());
        let mut process = Command::new(executable())
            .arg(folder.path().join("gateway.toml"))
            .env("DATABASE_URL", database)
            .env("APP_SECRET", SECRET)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut address = async |before: &str| -> SocketAddr {
            let line = timeout(PATIENCE, output.next_line()).await.unwrap();
            let line = line.unwrap().expect("the gateway ended at its start");
            line.strip_prefix(before).unwrap().parse().unwrap()
        };
        Self {
            address: address("listening on http://").await,
            metrics: address("metrics on http://").await,
            folder,
            process,
            _output: output,
        }
    }

    /// What service managers send to stop it.
    pub(crate) async fn terminate(&self) {
        let id = self.process.id().unwrap().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().await;
        assert!(sent.unwrap().success());
    }

    /// Waits for its end; gives how it ended, and the folder to start again in.
    pub(crate) async fn ended(mut self) -> (ExitStatus, TempDir) {
        let ended = timeout(PATIENCE, self.process.wait()).await;
        (ended.unwrap().unwrap(), self.folder)
    }

    /// Starts again with the file and the store of one that has ended.
    pub(crate) async fn again(folder: TempDir) -> Self {
        Self::start(folder).await
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Delivers a webhook of WhatsApp, signed.
    pub(crate) async fn deliver(&self, body: &str) -> reqwest::Response {
        self.deliver_with(body, &[]).await
    }

    pub(crate) async fn deliver_with(
        &self,
        body: &str,
        headers: &[(&str, &str)],
    ) -> reqwest::Response {
        let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
        mac.update(body.as_bytes());
        let signature = hex::encode(mac.finalize().into_bytes());
        let mut request = reqwest::Client::new()
            .post(self.url("/webhooks/whatsapp"))
            .header("content-type", "application/json")
            .header("x-hub-signature-256", format!("sha256={signature}"))
            .body(body.to_owned());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().await.unwrap()
    }

    /// Sends a message of the web chat.
    pub(crate) async fn say(
        &self,
        key: &str,
        text: &str,
        headers: &[(&str, &str)],
    ) -> reqwest::Response {
        let mut request = reqwest::Client::new()
            .post(self.url("/chat/7"))
            .header("x-user", "ann")
            .header("idempotency-key", key)
            .body(text.to_owned());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().await.unwrap()
    }
}

/// The built example, which must be as new as its sources.
pub(crate) fn executable() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().unwrap().parent().unwrap();
    let built = profile.join("examples").join("gateway");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = [root.join("src"), root.join("examples/gateway")];
    let newest = sources.iter().map(|folder| changed(folder)).max();
    let fresh = fs::metadata(&built)
        .and_then(|it| it.modified())
        .is_ok_and(|at| Some(at) >= newest);
    assert!(
        fresh,
        "{} is missing or old: cargo build --example gateway",
        built.display()
    );
    built
}

fn changed(path: &Path) -> SystemTime {
    let here = fs::metadata(path).unwrap();
    if here.is_file() {
        // What is no source is not built.
        let is_source = path.extension().is_some_and(|end| end == "rs");
        return if is_source {
            here.modified().unwrap()
        } else {
            SystemTime::UNIX_EPOCH
        };
    }
    fs::read_dir(path)
        .unwrap()
        .map(|entry| changed(&entry.unwrap().path()))
        .max()
        .unwrap_or(SystemTime::UNIX_EPOCH)
}
