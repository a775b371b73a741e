//! Runs of several processes, and the table that shows them.

use std::time::Duration;

use crate::child::{Did, Task};
use crate::machine::{Took, Used};
use crate::server::Server;

/// One run.
pub(crate) struct Shown {
    accepted: f64,
    handled: f64,
    middle: f64,
    worst_of_hundred: f64,
    cost: f64,
    log: f64,
    foreign: f64,
    time: f64,
}

impl Shown {
    /// How many were handled.
    pub(crate) fn count(&self) -> f64 {
        self.handled * self.time
    }
}

/// Runs these tasks at once, each in a process of its own.
pub(crate) async fn measured(server: &Server, tasks: &[Task]) -> Shown {
    let processes = tasks.iter().map(Task::start).collect();
    let log = server.log().await;
    let used = Used::now(Some(server.pid()));
    let did = tokio::task::block_in_place(|| Did::by(processes));
    let took = used.took(Some(server.pid()));
    let log = server.log().await - log;
    shown(&did, &took, log as f64)
}

fn shown(did: &Did, took: &Took, log: f64) -> Shown {
    let (time, handled) = (did.time.as_secs_f64(), did.handled.max(1) as f64);
    Shown {
        accepted: did.accepted as f64 / time,
        handled: did.handled as f64 / time,
        middle: did.latency(0.5).as_secs_f64(),
        worst_of_hundred: did.latency(0.99).as_secs_f64(),
        cost: took.ours.saturating_sub(did.before).as_secs_f64() / handled,
        log: log / handled,
        foreign: took.foreign,
        time,
    }
}

/// The runs of one comparison, by name.
#[derive(Default)]
pub(crate) struct Sheet(Vec<(String, Vec<Shown>)>);

impl Sheet {
    pub(crate) fn push(&mut self, name: &str, shown: Shown) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, runs)) => runs.push(shown),
            None => self.0.push((name.to_owned(), vec![shown])),
        }
    }

    /// The medians. Ratios are to the last run before whose name ends with `baseline`, of what was
    /// handled a second.
    pub(crate) fn print(&self, title: &str, baseline: &str) {
        println!("\n## {title}\n");
        println!(
            "| | accepted/s | handled/s | ratio | p50 | p99 | CPU each | log each | others' CPU |"
        );
        println!("|---|---|---|---|---|---|---|---|---|");
        let mut base = f64::NAN;
        for (name, runs) in &self.0 {
            let middle = |of: fn(&Shown) -> f64| median(runs, of);
            let handled = middle(|run| run.handled);
            if name.ends_with(baseline) {
                base = handled;
            }
            println!(
                "| {name} | {:.0} | {handled:.0} | {:.2} | {:.2?} | {:.2?} | {:.1?} | {:.0} B | \
                 {:.0} % |",
                middle(|run| run.accepted),
                handled / base,
                Duration::from_secs_f64(middle(|run| run.middle)),
                Duration::from_secs_f64(middle(|run| run.worst_of_hundred)),
                Duration::from_secs_f64(middle(|run| run.cost)),
                middle(|run| run.log),
                middle(|run| run.foreign) * 100.0,
            );
        }
    }
}

fn median(runs: &[Shown], of: fn(&Shown) -> f64) -> f64 {
    let mut values: Vec<f64> = runs.iter().map(of).collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
