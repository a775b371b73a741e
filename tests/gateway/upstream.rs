//! The endpoint behind the gateway.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// A Python endpoint that ends with its test.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    _process: Child,
}

/// A request that came to it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    pub(crate) length: usize,
}

impl Request {
    /// The lines of a field.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let of_name = self.headers.iter().filter(|(it, _)| it == name);
        of_name.map(|(_, value)| value.as_str()).collect()
    }
}

impl Upstream {
    pub(crate) async fn start() -> Self {
        Self::start_at(0).await
    }

    pub(crate) async fn start_at(port: u16) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gateway/upstream.py");
        let mut process = Command::new("python3")
            .arg(script)
            .arg(port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("python3 is needed");
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut port = String::new();
        output.read_line(&mut port).await.unwrap();
        let port: u16 = port.trim().parse().unwrap();
        Self {
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            _process: process,
        }
    }

    /// Lets one stream of events go on.
    pub(crate) async fn go(&self) {
        let url = format!("http://{}/go", self.address);
        reqwest::get(url).await.unwrap();
    }

    /// What came, in order.
    pub(crate) async fn seen(&self) -> Vec<Request> {
        let url = format!("http://{}/seen", self.address);
        let answer = reqwest::get(url).await.unwrap();
        answer.json().await.unwrap()
    }
}
