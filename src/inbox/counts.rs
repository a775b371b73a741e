//! What an inbox did, in numbers.

use crate::counts::Counter;
use crate::store::queue::arrival::Stage;

/// One count for each thing that an inbox does.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) accepted: Counter,
    repeats: [Counter; 3],
    pub(crate) handled: Counter,
    pub(crate) failed: Counter,
    pub(crate) died: Counter,
    pub(crate) lost: Counter,
    pub(crate) given_back: Counter,
    pub(crate) store_failures: Counter,
}

/// What an inbox did in this process since it was built: a snapshot, in which counts taken at
/// slightly different moments stand side by side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InboxCounts {
    /// Messages that were new, and are stored.
    pub accepted: u64,
    /// Repeats of messages that waited or were being handled.
    pub repeats_of_waiting: u64,
    /// Repeats of messages that were done.
    pub repeats_of_done: u64,
    /// Repeats of messages that were dead.
    pub repeats_of_dead: u64,
    /// Messages that were handled.
    pub handled: u64,
    /// Attempts that failed and are made again.
    pub failed: u64,
    /// Messages that died.
    pub died: u64,
    /// Turns that another worker took over.
    pub lost: u64,
    /// Turns given back before their line was empty: at the end of a worker, or so that other
    /// lines come to their turn.
    pub given_back: u64,
    /// Store calls that failed.
    pub store_failures: u64,
    /// Requests that carried no message and passed to the handler.
    pub without_key: u64,
    /// Requests refused: malformed, unverified, too large, cut short.
    pub refused: u64,
}

impl Counters {
    pub(crate) fn repeat(&self, stage: Stage) -> &Counter {
        let [waiting, done, dead] = &self.repeats;
        match stage {
            Stage::Waiting => waiting,
            Stage::Done => done,
            Stage::Dead => dead,
        }
    }

    pub(crate) fn snapshot(&self) -> InboxCounts {
        InboxCounts {
            accepted: self.accepted.value(),
            repeats_of_waiting: self.repeat(Stage::Waiting).value(),
            repeats_of_done: self.repeat(Stage::Done).value(),
            repeats_of_dead: self.repeat(Stage::Dead).value(),
            handled: self.handled.value(),
            failed: self.failed.value(),
            died: self.died.value(),
            lost: self.lost.value(),
            given_back: self.given_back.value(),
            store_failures: self.store_failures.value(),
            ..InboxCounts::default()
        }
    }
}
