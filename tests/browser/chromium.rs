//! A headless Chromium with a profile of its own, that ends with the test whatever happens.

use std::io::{Write, stderr};
use std::path::Path;
use std::process::{Command as Blocking, Stdio};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use thirtyfour::prelude::*;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// Long enough for a loaded machine; reached only when something hangs.
const PATIENCE: Duration = Duration::from_mins(1);

/// What Chromium needs as root and without a display, and what keeps it from calling home.
const ARGUMENTS: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
];

/// A browser and its driver.
pub(crate) struct Chromium {
    _group: Group,
    driver: WebDriver,
    _profile: TempDir,
    /// Kept open: a driver whose output nobody reads would end at its next line.
    _output: Lines<BufReader<ChildStdout>>,
}

/// The driver's process group, which is Chromium's too: killed when dropped. A shell that waits for
/// the end of its input kills it when the test itself is killed.
struct Group(Child);

const SHELL: &str = "chromedriver --port=0 & cat >/dev/null; kill -s KILL 0";

impl Drop for Group {
    fn drop(&mut self) {
        let Some(id) = self.0.id() else { return };
        let group = format!("-{id}");
        let killed = Blocking::new("kill").args(["-KILL", "--", &group]).status();
        assert!(killed.is_ok(), "{killed:?}");
    }
}

impl Chromium {
    /// Starts one; `None`, said loudly, where there is none to start.
    pub(crate) async fn start() -> Option<Self> {
        if !installed("chromedriver") || !installed("chromium") {
            let required = std::env::var("BROWSER").is_ok_and(|it| it == "required");
            assert!(!required, "chromium and chromedriver are required");
            // Not by `eprintln`, which is heard only when a test fails.
            let said = b"SKIPPED: chromium or chromedriver is not installed
";
            stderr().write_all(said).unwrap();
            return None;
        }
        let profile = tempfile::tempdir().unwrap();
        let (group, address, output) = start_driver(profile.path()).await;
        let mut wanted = DesiredCapabilities::chrome();
        wanted.set_binary("/usr/bin/chromium").unwrap();
        for argument in ARGUMENTS {
            wanted.add_arg(argument).unwrap();
        }
        let folder = format!("--user-data-dir={}", profile.path().display());
        wanted.add_arg(&folder).unwrap();
        let driver = WebDriver::new(address, wanted).await.unwrap();
        Some(Self {
            driver,
            _group: group,
            _profile: profile,
            _output: output,
        })
    }

    /// The window that commands go to.
    pub(crate) fn window(&self) -> &WebDriver {
        &self.driver
    }

    /// Cuts the current window off the network, or connects it again.
    pub(crate) async fn offline(&self, offline: bool) {
        let cdp = self.driver.cdp();
        cdp.send_raw("Network.enable", json!({})).await.unwrap();
        let conditions = json!({
            "offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1,
        });
        cdp.send_raw("Network.emulateNetworkConditions", conditions)
            .await
            .unwrap();
    }

    /// A window of this size in which a person sees so many pixels for each.
    pub(crate) async fn size(&self, width: u32, height: u32, scale: f64) {
        let metrics = json!({
            "width": width, "height": height, "deviceScaleFactor": scale, "mobile": false,
        });
        let cdp = self.driver.cdp();
        cdp.send_raw("Emulation.setDeviceMetricsOverride", metrics)
            .await
            .unwrap();
    }

    pub(crate) async fn screenshot(&self, path: &Path) {
        self.driver.screenshot(path).await.unwrap();
    }

    /// Ends it in good order.
    pub(crate) async fn quit(self) {
        self.driver.clone().quit().await.unwrap();
    }
}

impl Drop for Chromium {
    /// After a panic the session is left to its end with the driver: to wait for the driver here
    /// would wait for this very thread.
    fn drop(&mut self) {
        drop(self.driver.clone().leak());
    }
}

async fn start_driver(home: &Path) -> (Group, String, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new("sh")
        .args(["-c", SHELL])
        .env("HOME", home)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let group = Group(child);
    loop {
        let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap();
        let line = line.expect("the driver ended before it listened");
        if let Some((_, port)) = line.split_once("successfully on port ") {
            let address = format!("http://127.0.0.1:{}", port.trim_end_matches('.'));
            return (group, address, lines);
        }
    }
}

fn installed(program: &str) -> bool {
    let said = Blocking::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    said.is_ok_and(|status| status.success())
}
