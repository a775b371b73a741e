//! Where each target begins: the senders' requests among the fixtures of the tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The names of the targets.
pub const TARGETS: [&str; 6] = ["channels", "cut", "forms", "json", "signatures", "xml"];

#[derive(Deserialize)]
struct Case {
    file: String,
    channel: String,
    method: Option<String>,
    path: Option<String>,
    content_type: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Vector {
    channel: String,
    body: Option<String>,
    file: Option<String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

/// The inputs that a target begins with, each under a name of its own.
pub fn of(target: &str) -> Vec<(String, Vec<u8>)> {
    let mut seeds = Vec::new();
    for case in manifest() {
        let body = fixture(&case.file);
        let is = |end: &str| case.file.ends_with(end);
        let seed = match target {
            "channels" => Some(case.request(&body)),
            "cut" => is(".json").then(|| [b"\x55", body.as_slice()].concat()),
            "forms" => is(".form").then_some(body),
            "json" => is(".json").then(|| [PATHS, body.as_slice()].concat()),
            "signatures" => None,
            "xml" => is(".xml").then_some(body),
            other => panic!("no target {other}"),
        };
        let name = case.file.replace(['/', '.'], "-");
        seeds.extend(seed.map(|seed| (name, seed)));
    }
    if target == "signatures" {
        let vectors = vectors().into_iter().enumerate();
        seeds.extend(vectors.map(|(n, it)| (format!("{}-{n}", it.channel), it.request())));
    }
    let own = OWN.iter().filter(|(of, _)| *of == target);
    seeds.extend(
        own.enumerate()
            .map(|(n, (_, text))| (format!("own-{n}"), (*text).into())),
    );
    seeds
}

const PATHS: &[u8] = b"$.entry[*].changes[*].value.messages[*]\n.id\n$.entry[*].id\n";

/// What no sender's request shows.
const OWN: &[(&str, &[u8])] = &[
    (
        "cut",
        b"\x05{\"m\":[{\"id\":1} , {\"id\":\"\\u0061\"},\t7,{\"id\":3}],\"x\":[1,2]}",
    ),
    (
        "forms",
        b"id=1&to=x+y%2B&a=acc&payload=%7B%22m%22%3A%5B%7B%22id%22%3A1%7D%5D%7D",
    ),
    (
        "json",
        b"$['e'][-1].m[*]\n.id\n.x\n{\"e\":[{\"m\":[{\"id\":1},{\"id\":\"a|b\"}]}]}",
    ),
    (
        "json",
        b"$[*]\n@\n$[0]\n[1,\"\\ud83d\\ude00\",123456789012345678901234567890]",
    ),
    (
        "xml",
        b"<?xml version=\"1.0\"?><xml><a>x<b>2</b></a><id>a&amp;<![CDATA[<b>]]>&#x62;</id></xml>",
    ),
];

/// The folder of the fixtures.
fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures")
}

fn fixture(file: &str) -> Vec<u8> {
    fs::read(fixtures().join(file)).expect("a fixture")
}

fn manifest() -> Vec<Case> {
    serde_json::from_slice(&fixture("manifest.json")).expect("the list of the fixtures")
}

fn vectors() -> Vec<Vector> {
    serde_json::from_slice(&fixture("signatures.json")).expect("the list of the signatures")
}

impl Case {
    fn request(&self, body: &[u8]) -> Vec<u8> {
        let method = self.method.as_deref().unwrap_or("POST");
        let path = self.path.as_deref().unwrap_or("/hook");
        let kind = self.content_type.iter().map(|kind| ("content-type", kind));
        let fields = kind.chain(
            self.headers
                .iter()
                .map(|(name, value)| (name.as_str(), value)),
        );
        let start = format!("{} {method} {path}\n", self.channel);
        [start.as_bytes(), &lines(fields), b"\n", body].concat()
    }
}

impl Vector {
    fn request(&self) -> Vec<u8> {
        let body = match (&self.body, &self.file) {
            (Some(body), _) => body.clone().into_bytes(),
            (None, Some(file)) => fixture(file),
            (None, None) => Vec::new(),
        };
        let url = self.url.as_deref().unwrap_or("/hook");
        let fields = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value));
        let start = format!("{} POST {url}\n", self.channel);
        [start.as_bytes(), &lines(fields), b"\n", &body].concat()
    }
}

fn lines<'a>(fields: impl Iterator<Item = (&'a str, &'a String)>) -> Vec<u8> {
    let lines: Vec<String> = fields
        .map(|(name, value)| format!("{name}: {value}\n"))
        .collect();
    lines.concat().into_bytes()
}
