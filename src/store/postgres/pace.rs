//! How many statements of one kind may be in flight at once.

use std::time::{Duration, Instant};

/// Learns from finished statements whether flushes are slow.
///
/// On a fast disk one statement at a time is best: what arrives meanwhile goes together in the
/// next. Where a flush takes long, a call that just missed a statement would wait for two of them,
/// so more may be in flight; the server flushes once for all that wait.
///
/// Statements that only read wait for no flush. Three of them keep a server busy where one would
/// leave it idle while its answers are being read.
#[derive(Debug)]
pub(super) struct Pace {
    most: usize,
    /// What the quicker ones of the writing statements take beyond their rows, smoothed.
    wait: Duration,
    /// How many of the last statements only read, in 256ths, smoothed.
    reading: u32,
}

/// What a statement did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It wrote, and its commit was waited for.
    Written,
    /// It only read.
    Read,
}

/// What a row takes the server, generously.
const PER_ROW: Duration = Duration::from_micros(30);

/// A statement that takes so long beyond its rows waits for something: a flush, a row, a network.
const SLOW: Duration = Duration::from_micros(800);

/// A statement in flight for so long is stuck; others do not wait for it.
const STUCK: Duration = Duration::from_millis(20);

impl Pace {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            wait: Duration::ZERO,
            reading: 0,
        }
    }

    /// Notes that a statement of so many rows has ended.
    pub(super) fn note(&mut self, rows: usize, took: Duration, effect: Effect) {
        if effect == Effect::Read {
            self.reading = (self.reading * 7 + 256) / 8;
            return;
        }
        self.reading = self.reading * 7 / 8;
        let rows = u32::try_from(rows).unwrap_or(u32::MAX);
        let wait = took.saturating_sub(PER_ROW.saturating_mul(rows));
        let wait = wait.min(STUCK);
        // A slow flush holds up every statement, a busy processor only some: the quick ones tell.
        self.wait = if wait < self.wait {
            (self.wait * 3 + wait) / 4
        } else {
            (self.wait * 31 + wait) / 32
        };
    }

    /// Whether one more may begin, beside those that began at these moments.
    pub(super) fn allows_beside(&self, running: impl ExactSizeIterator<Item = Instant>) -> bool {
        let count = running.len();
        let steady = match (self.reading > 192, self.wait < SLOW) {
            (true, _) => self.most.min(3),
            (false, true) => 1,
            (false, false) => self.most,
        };
        count < steady || count < self.most && running.min().is_some_and(|at| at.elapsed() > STUCK)
    }
}

/// How many calls the last statements served, in 256ths, smoothed.
#[derive(Debug, Default)]
pub(super) struct Crowd(usize);

impl Crowd {
    /// Notes that a statement has served so many calls.
    pub(super) fn note(&mut self, calls: usize) {
        self.0 = (self.0 * 3 + calls * 256) / 4;
    }

    /// Whether calls come several at once: three in two statements, or more. Single ones between
    /// crowds change nothing.
    pub(super) fn comes(&self) -> bool {
        self.0 > 384
    }

    pub(super) fn size(&self) -> usize {
        self.0 / 256
    }
}

/// Whether calls are to go on two ways instead of one, where a statement served so many lately.
///
/// Two ways each have half of the calls: so they are given up only well below half of what it takes
/// to begin with them.
pub(super) fn parts(parted: bool, crowd: usize) -> bool {
    crowd >= if parted { 24 } else { 64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_go_together_and_many_apart() {
        assert!(!parts(false, 32));
        assert!(parts(false, 100));
    }

    #[test]
    fn half_of_what_parts_them_keeps_them_apart() {
        assert!(parts(true, 32));
        assert!(!parts(true, 16));
    }

    #[test]
    fn single_calls_are_no_crowd_and_between_crowds_change_nothing() {
        let mut crowd = Crowd::default();
        (0..9).for_each(|_| crowd.note(1));
        assert!(!crowd.comes());
        for calls in [8, 1, 8, 1] {
            crowd.note(calls);
            assert!(crowd.comes(), "{crowd:?}");
        }
        (0..9).for_each(|_| crowd.note(1));
        assert!(!crowd.comes());
    }

    fn after(took: Duration, rows: usize) -> Pace {
        let mut pace = Pace::new(4);
        for _ in 0..50 {
            pace.note(rows, took, Effect::Written);
        }
        pace
    }

    fn allowed(pace: &Pace) -> usize {
        (0..9)
            .take_while(|count| pace.allows_beside(vec![Instant::now(); *count].into_iter()))
            .count()
    }

    #[test]
    fn a_fast_disk_gets_one_statement_at_a_time() {
        assert_eq!(allowed(&after(Duration::from_micros(300), 1)), 1);
        assert_eq!(allowed(&after(Duration::from_micros(2500), 100)), 1);
    }

    #[test]
    fn a_slow_disk_gets_several() {
        assert_eq!(allowed(&after(Duration::from_micros(2300), 1)), 4);
        assert_eq!(allowed(&after(Duration::from_millis(3), 16)), 4);
    }

    #[test]
    fn one_long_statement_does_not_make_a_disk_slow() {
        let mut pace = after(Duration::from_micros(300), 1);
        pace.note(1, Duration::from_millis(4), Effect::Written);
        assert_eq!(allowed(&pace), 1);
    }

    #[test]
    fn a_busy_processor_does_not_make_a_disk_slow() {
        let mut pace = after(Duration::from_micros(300), 1);
        for took in [500, 2500, 600, 4000].repeat(20) {
            pace.note(4, Duration::from_micros(took), Effect::Written);
            assert_eq!(allowed(&pace), 1);
        }
    }

    #[test]
    fn reading_takes_three_whatever_the_disk() {
        for took in [100, 5000] {
            let mut pace = after(Duration::from_micros(took), 1);
            for _ in 0..50 {
                pace.note(1, Duration::from_millis(5), Effect::Read);
            }
            assert_eq!(allowed(&pace), 3);
        }
    }

    #[test]
    fn a_stuck_statement_is_passed_by() {
        let pace = after(Duration::from_micros(300), 1);
        let long_ago = Instant::now().checked_sub(STUCK * 2).unwrap();
        assert!(pace.allows_beside([long_ago].into_iter()));
        assert!(!pace.allows_beside([long_ago; 4].into_iter()));
    }
}
