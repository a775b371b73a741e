//! What happened, in one file that all processes append to: the order of its lines is the order
//! of the events, since each line is one write.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A handler began: which message, in which process, at which attempt.
    Began(String, u32, u32),
    /// It ended.
    Ended(String, u32),
    /// It was dropped before its end.
    Cut(String, u32),
    /// A process was killed, and is gone.
    Killed(u32),
}

/// The journal, to be written.
#[derive(Debug)]
pub(crate) struct Journal(File);

impl Journal {
    pub(crate) fn open(path: &Path) -> Self {
        let file = OpenOptions::new().append(true).create(true).open(path);
        Self(file.unwrap())
    }

    pub(crate) fn write(&self, event: &Event) {
        let line = match event {
            Event::Began(id, process, attempt) => format!("began {id} {process} {attempt}\n"),
            Event::Ended(id, process) => format!("ended {id} {process}\n"),
            Event::Cut(id, process) => format!("cut {id} {process}\n"),
            Event::Killed(process) => format!("killed {process}\n"),
        };
        (&self.0).write_all(line.as_bytes()).unwrap();
    }

    pub(crate) fn read(path: &Path) -> Vec<Event> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(parse).collect()
    }
}

fn parse(line: &str) -> Event {
    let words: Vec<&str> = line.split(' ').collect();
    let number = |at: usize| words[at].parse().unwrap();
    let id = || words[1].to_owned();
    match words[0] {
        "began" => Event::Began(id(), number(2), number(3)),
        "ended" => Event::Ended(id(), number(2)),
        "cut" => Event::Cut(id(), number(2)),
        "killed" => Event::Killed(number(1)),
        other => panic!("no event: {other}"),
    }
}
