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
    /// How many requests are in flight, if not all of the table's numbers in turn.
    in_flight: Option<usize>,
}

/// How many requests are in flight, in the tables.
const IN_FLIGHT: [usize; 3] = [1, 32, 256];

impl Options {
    /// Reads the command line. What cargo adds for itself is passed by.
    pub(crate) fn read() -> Self {
        let mut options = Self {
            names: Vec::new(),
            rounds: 3,
            time: Duration::from_secs(2),
            keys: 1_000_000,
            in_flight: None,
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
                "--in-flight" => {
                    options.in_flight = Some(words.next().unwrap().parse().unwrap());
                }
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

    /// How many requests are to be in flight, in turn.
    pub(crate) fn in_flight(&self) -> Vec<usize> {
        self.in_flight
            .map_or_else(|| IN_FLIGHT.to_vec(), |number| vec![number])
    }

    /// Whether a part is to be run: all are, unless some are named.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| wanted == name)
    }
}
