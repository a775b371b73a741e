//! What to run, and how long.

use std::time::Duration;

/// The command line.
pub(crate) struct Options {
    names: Vec<String>,
    /// How often each configuration is run.
    pub(crate) rounds: usize,
    /// How long each run takes.
    pub(crate) time: Duration,
    /// How many keys a table is filled with.
    pub(crate) keys: usize,
}

impl Options {
    /// Reads the command line. What cargo adds for itself is passed by.
    pub(crate) fn read() -> Self {
        let mut options = Self {
            names: Vec::new(),
            rounds: 3,
            time: Duration::from_secs(2),
            keys: 1_000_000,
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            match word.as_str() {
                "--rounds" => options.rounds = words.next().unwrap().parse().unwrap(),
                "--seconds" => {
                    let seconds = words.next().unwrap().parse().unwrap();
                    options.time = Duration::from_secs_f64(seconds);
                }
                "--keys" => options.keys = words.next().unwrap().parse().unwrap(),
                // As a test: everything once, and short.
                "--test" => {
                    options.rounds = 1;
                    options.time = Duration::from_millis(50);
                    options.keys = 1000;
                }
                "--bench" => {}
                name => options.names.push(name.to_owned()),
            }
        }
        options
    }

    /// Whether a part is to be run: all are, unless some are named.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| wanted == name)
    }
}
