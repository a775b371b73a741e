//! Rounds of runs, and the table that shows them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::load::Shown;

/// All runs of one comparison, by name.
#[derive(Default)]
pub(crate) struct Runs {
    names: Vec<String>,
    shown: BTreeMap<String, Vec<Shown>>,
}

impl Runs {
    pub(crate) fn push(&mut self, name: &str, shown: Shown) {
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
        self.shown.entry(name.to_owned()).or_default().push(shown);
    }

    /// The medians of all runs, each as a ratio to the run whose name ends with `baseline` before
    /// it.
    pub(crate) fn print(&self, title: &str, baseline: &str) {
        println!("\n## {title}\n");
        println!("| | per second | ratio | p50 | p99 | CPU each | others' CPU |");
        println!("|---|---|---|---|---|---|---|");
        let mut base = f64::NAN;
        for name in &self.names {
            let runs = &self.shown[name];
            let rate = median(runs, |run| run.rate);
            let ratio = if name.ends_with(baseline) {
                base = rate;
                "1".to_owned()
            } else {
                format!("{:.2}", rate / base)
            };
            let time = |of: fn(&Shown) -> Duration| show(median(runs, |run| of(run).as_secs_f64()));
            println!(
                "| {name} | {rate:.0} | {ratio} | {} | {} | {} | {:.0} % |",
                time(|run| run.middle),
                time(|run| run.worst_of_hundred),
                time(|run| run.cost),
                median(runs, |run| run.foreign) * 100.0,
            );
        }
    }
}

fn median(runs: &[Shown], of: impl Fn(&Shown) -> f64) -> f64 {
    let mut values: Vec<f64> = runs.iter().map(of).collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn show(seconds: f64) -> String {
    if seconds < 0.001 {
        format!("{:.0} µs", seconds * 1e6)
    } else {
        format!("{:.1} ms", seconds * 1e3)
    }
}
