//! Processor time: of this process, of a server, and of everything else.

use std::fs;
use std::time::{Duration, Instant};

/// Processor time that was used up to a moment.
#[derive(Clone, Copy)]
pub(crate) struct Used {
    at: Instant,
    ours: Duration,
    all: Duration,
}

/// What a stretch of time took.
#[derive(Clone, Copy, Default)]
pub(crate) struct Took {
    pub(crate) time: Duration,
    /// By this process and the server.
    pub(crate) ours: Duration,
    /// The share of all processors that others took.
    pub(crate) foreign: f64,
}

impl Used {
    /// Up to now, by this process and by the server whose first process has this id.
    pub(crate) fn now(server: Option<u32>) -> Self {
        let of_server = server.map_or(Duration::ZERO, tree);
        Self {
            at: Instant::now(),
            ours: process("self") + of_server,
            all: machine(),
        }
    }

    /// Since then.
    pub(crate) fn took(&self, server: Option<u32>) -> Took {
        let now = Self::now(server);
        let time = now.at - self.at;
        let ours = now.ours.saturating_sub(self.ours);
        let all = now.all.saturating_sub(self.all);
        let cores = std::thread::available_parallelism().unwrap().get();
        let foreign = all.saturating_sub(ours).as_secs_f64() / time.as_secs_f64() / cores as f64;
        Took {
            time,
            ours,
            foreign,
        }
    }
}

/// A process and all that it started.
fn tree(root: u32) -> Duration {
    let mut sum = process(&root.to_string());
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        if name.parse::<u32>().is_ok() && parent(&name) == Some(root) {
            sum += process(&name);
        }
    }
    sum
}

fn parent(process: &str) -> Option<u32> {
    stat(process)?.get(1)?.parse().ok()
}

/// User and system time, and that of ended children.
fn process(name: &str) -> Duration {
    let Some(fields) = stat(name) else {
        return Duration::ZERO;
    };
    let ticks: u64 = fields
        .iter()
        .skip(11)
        .take(4)
        .map(|field| field.parse::<u64>().unwrap())
        .sum();
    Duration::from_millis(ticks * 10)
}

/// The fields behind the process's name: its state, its parent, …
fn stat(name: &str) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{name}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

/// All processors, without idling and waiting.
fn machine() -> Duration {
    let text = fs::read_to_string("/proc/stat").unwrap();
    let line = text.lines().next().unwrap();
    let fields: Vec<u64> = line
        .split_whitespace()
        .skip(1)
        .map(|field| field.parse().unwrap())
        .collect();
    let idle: u64 = fields.iter().skip(3).take(2).sum();
    let all: u64 = fields.iter().take(8).sum();
    Duration::from_millis((all - idle) * 10)
}
