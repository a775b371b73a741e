//! curl, where it is installed.

use std::net::SocketAddr;
use std::process::Stdio;

use tokio::process::Command;

use crate::peer::{Ask, Seen};

/// Sends a request by curl; `options` choose the protocol. `None` without curl.
pub(crate) async fn ask(url: &str, options: &[&str], ask: &Ask) -> Option<Result<Seen, String>> {
    let folder = tempfile::tempdir().unwrap();
    let (sent, head, body) = (
        folder.path().join("sent"),
        folder.path().join("head"),
        folder.path().join("body"),
    );
    std::fs::write(&sent, &ask.body).unwrap();
    std::fs::write(&body, b"").unwrap();
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--max-time", "60", "--insecure"])
        .args(options)
        .args(["--header", "content-type: text/plain"])
        .arg("--data-binary")
        .arg(format!("@{}", sent.display()))
        .arg("--dump-header")
        .arg(&head)
        .arg("--output")
        .arg(&body)
        .stderr(Stdio::piped());
    for (name, value) in &ask.headers {
        curl.args(["--header", &format!("{name}: {value}")]);
    }
    let output = match curl.arg(url).output().await {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => panic!("{error}"),
    };
    if !output.status.success() {
        return Some(Err(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let mut seen = parse(&std::fs::read(head).unwrap());
    seen.body = std::fs::read(body).unwrap();
    Some(Ok(seen))
}

pub(crate) fn url(address: SocketAddr) -> String {
    format!("http://{address}/messages")
}

/// Heads of interim answers, the head, and the trailers, each ended by a blank line.
fn parse(dump: &[u8]) -> Seen {
    let mut blocks: Vec<Vec<&[u8]>> = vec![Vec::new()];
    for line in dump.split(|byte| *byte == b'\n') {
        match line.trim_ascii() {
            [] => blocks.push(Vec::new()),
            line => blocks.last_mut().unwrap().push(line),
        }
    }
    let status_of = |block: &[&[u8]]| -> u16 {
        let line = block.first().copied().unwrap_or_default();
        let mut words = line.split(|byte| *byte == b' ');
        let code = words.nth(1).unwrap_or_default();
        str::from_utf8(code)
            .unwrap_or_default()
            .parse()
            .unwrap_or(0)
    };
    blocks.retain(|block| !block.is_empty() && !(100..200).contains(&status_of(block)));
    let mut seen = Seen::new(
        status_of(&blocks[0]),
        blocks[0][1..].iter().map(field).collect(),
    );
    for block in &blocks[1..] {
        seen.trailers.extend(block.iter().map(field));
    }
    seen
}

fn field(line: &&[u8]) -> (String, Vec<u8>) {
    let colon = line.iter().position(|byte| *byte == b':').unwrap_or(0);
    let name = String::from_utf8_lossy(&line[..colon]).to_ascii_lowercase();
    (name, line[colon + 1..].trim_ascii().to_vec())
}
