//! The page of channels, `docs/channels.md`, says what the channels' own docs and defaults say.
//!
//! `WRITE_DOCS=1 cargo test --all-features --test channel_table` writes it anew.
#![cfg(feature = "xml")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

#[path = "support/senders.rs"]
mod senders;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::time::Duration;

use http::Request;
use tower_idempotency::Keep;
use tower_idempotency::channel::{Reply, Terms};

use senders::channel;

const PAGE: &str = "docs/channels.md";

/// A channel as its source file describes it.
struct Described {
    /// The type.
    name: String,
    /// The first part of its keys.
    channel: String,
    /// The rows of the table in its docs.
    rows: BTreeMap<String, String>,
}

impl Described {
    /// `None` if the file is about no sender.
    fn in_source(text: &str) -> Option<Self> {
        let docs = text.lines().filter_map(|line| line.strip_prefix("/// | "));
        let cells = docs.filter_map(|row| row.strip_suffix(" |")?.split_once(" | "));
        let mut rows = BTreeMap::new();
        for (names, what) in cells {
            for name in names.split(", ") {
                rows.insert(name.to_owned(), what.to_owned());
            }
        }
        rows.contains_key("key").then(|| Self {
            name: between(text, "pub struct ", &[' ', '(', ';']),
            channel: between(text, "Terms::webhook(\"", &['"']),
            rows,
        })
    }

    fn row(&self, name: &str) -> &str {
        self.rows.get(name).map_or("", String::as_str)
    }

    fn terms(&self) -> Terms {
        let head = Request::post("/").body(()).unwrap().into_parts().0;
        channel(&self.channel).unwrap().terms(&head).clone()
    }
}

fn between(text: &str, start: &str, end: &[char]) -> String {
    let (_, rest) = text.split_once(start).unwrap();
    rest.split(end).next().unwrap().to_owned()
}

fn described() -> Vec<Described> {
    let files = fs::read_dir("src/channel").unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let sources = paths.filter(|path| path.extension().is_some_and(|it| it == "rs"));
    let texts = sources.map(|path| fs::read_to_string(path).unwrap());
    let mut all: Vec<_> = texts
        .filter_map(|text| Described::in_source(&text))
        .collect();
    all.sort_by_key(|it| it.name.to_lowercase());
    all
}

fn page() -> String {
    let mut page = PREFACE.to_owned();
    for channel in described() {
        let what = ["key", "scope", "conversation", "time"].map(|row| channel.row(row));
        writeln!(page, "| `{}` | {} |", channel.name, what.join(" | ")).unwrap();
    }
    page += TERMS;
    for channel in described() {
        let terms = channel.terms();
        let repeat = if terms.reply == Reply::Ack {
            "the record, else the ack"
        } else {
            "the record"
        };
        let cells = [
            format!("`{}`", channel.name),
            span(terms.wait),
            channel.row("repeats").to_owned(),
            kept(terms.keep),
            repeat.to_owned(),
            ack(&terms),
        ];
        writeln!(page, "| {} |", cells.join(" | ")).unwrap();
    }
    page
}

fn kept(keep: Keep) -> String {
    if let Keep::For(time) = keep {
        span(time)
    } else {
        "with the conversation".to_owned()
    }
}

fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    let units = [(24 * 3600, "d"), (3600, "h"), (60, "min"), (1, "s")];
    let fits = |(unit, _): &(u64, &str)| seconds.is_multiple_of(*unit) && seconds > *unit;
    let (unit, name) = units.into_iter().find(fits).unwrap_or((1, "s"));
    format!("{} {name}", seconds / unit)
}

fn ack(terms: &Terms) -> String {
    let status = terms.ack.status.as_u16();
    let body = String::from_utf8(terms.ack.body.to_vec()).unwrap();
    if body.is_empty() {
        status.to_string()
    } else {
        format!("{status}, `{body}`")
    }
}

const PREFACE: &str = "<!-- Written by `WRITE_DOCS=1 cargo test --all-features --test channel_table`. -->

# Channels for senders

Each is one type in `tower_idempotency::channel`, whose docs have the sender's pages. Other senders
that post JSON are a `JsonPath`, forms a `FormField`, XML an `XmlPath`, ids in a header a `HeaderId`;
which become channels by `.verified_by(…)` or `.unverified()`; anything else implements `Channel`.

## What each reads

The parts of a key are named in their order. A message without one of them passes, unprotected;
handshakes and safe methods pass every time.

| channel | key | scope | conversation | the sender's time |
| --- | --- | --- | --- | --- |
";

const TERMS: &str = "
## Its defaults

How long a repeat waits for the first run, how long the sender goes on repeating, how long records
are kept, what a repeat of a finished message gets, and the answer that tells the sender \"received\".

| channel | waits | the sender repeats | keeps | a repeat gets | ack |
| --- | --- | --- | --- | --- | --- |
";

#[test]
fn the_page_says_what_the_channels_do() {
    let page = page();
    if std::env::var_os("WRITE_DOCS").is_some() {
        fs::write(PAGE, &page).unwrap();
    }
    let written = fs::read_to_string(PAGE).unwrap();
    assert!(
        written == page,
        "{PAGE} is out of date: write it anew with WRITE_DOCS=1"
    );
}

#[test]
fn every_sender_of_the_fixtures_is_on_the_page() {
    let mut described: Vec<_> = described().into_iter().map(|it| it.channel).collect();
    described.sort();
    let text = fs::read("tests/fixtures/channels.json").unwrap();
    let senders: Vec<serde_json::Value> = serde_json::from_slice(&text).unwrap();
    let names = senders
        .iter()
        .filter_map(|sender| sender.get("channel")?.as_str());
    let mut names: Vec<_> = names.filter(|name| *name != "webchat").collect();
    names.sort_unstable();
    assert_eq!(described, names);
}

#[test]
fn every_channel_says_what_it_reads() {
    for channel in described() {
        for row in [
            "key",
            "scope",
            "conversation",
            "time",
            "waits",
            "keeps",
            "ack",
        ] {
            assert!(!channel.row(row).is_empty(), "{}: {row}", channel.name);
        }
    }
}
