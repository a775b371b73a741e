//! What a store is, without shards, queues and hashes: a list of rows.

use std::collections::BTreeMap;
use std::time::Duration;

use tower_idempotency::store::End;
use tower_idempotency::{Keep, Payload, Record};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) key: u8,
    pub(crate) print: Option<u8>,
    pub(crate) conversation: Option<u8>,
}

/// What a claim is answered. Leases are named by the order in which they were granted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Run { grant: usize, attempt: u32 },
    Replay(Option<String>),
    Running(Duration),
    Other(u8),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Absent,
    Running(Duration),
    Done(Option<String>),
}

#[derive(Default)]
pub(crate) struct Model {
    pub(crate) now: Duration,
    rows: BTreeMap<u8, Row>,
    /// When a conversation had its last new message, or was closed. Never cleared: a conversation
    /// without rows keeps nothing.
    latest: BTreeMap<u8, Duration>,
    grants: usize,
}

struct Row {
    grant: usize,
    attempt: u32,
    nonce: u8,
    print: Option<u8>,
    conversation: Option<u8>,
    forgotten: bool,
    state: State,
}

enum State {
    Running {
        until: Duration,
    },
    Done {
        body: Option<String>,
        since: Duration,
        keep: Keep,
    },
}

impl Model {
    pub(crate) fn claim(&mut self, ask: Ask, nonce: u8, lease: Duration) -> Answer {
        self.clear();
        let (now, until, grant) = (self.now, self.now + lease, self.grants);
        let Some(row) = self.rows.get_mut(&ask.key) else {
            self.grants += 1;
            if let Some(conversation) = ask.conversation {
                self.latest.insert(conversation, now);
            }
            self.rows
                .insert(ask.key, Row::first(ask, nonce, grant, until));
            return Answer::Run { grant, attempt: 1 };
        };
        match &mut row.state {
            State::Running { until: kept } if row.nonce == nonce => {
                *kept = until;
                Answer::Run {
                    grant: row.grant,
                    attempt: row.attempt,
                }
            }
            State::Running { until: kept } if *kept <= now => {
                *kept = until;
                row.nonce = nonce;
                row.grant = grant;
                row.attempt += 1;
                row.print = ask.print.or(row.print);
                self.grants += 1;
                Answer::Run {
                    grant,
                    attempt: row.attempt,
                }
            }
            State::Running { until: kept } => match (row.print, ask.print) {
                (Some(first), Some(print)) if first != print => Answer::Other(first),
                _ => Answer::Running(kept.saturating_sub(now)),
            },
            State::Done { body, .. } => match (row.print, ask.print) {
                (Some(first), Some(print)) if first != print => Answer::Other(first),
                _ => Answer::Replay(body.clone()),
            },
        }
    }

    pub(crate) fn renew(&mut self, grant: usize, lease: Duration) -> bool {
        let until = self.now + lease;
        match self.row_of(grant).map(|row| &mut row.state) {
            Some(State::Running { until: kept }) => {
                *kept = until;
                true
            }
            Some(State::Done { .. }) | None => false,
        }
    }

    pub(crate) fn settle(&mut self, grant: usize, end: &End) -> bool {
        let since = self.now;
        let Some(row) = self.row_of(grant) else {
            return false;
        };
        let (body, keep) = match (&row.state, end) {
            (State::Done { .. }, End::Record { .. }) => return true,
            (State::Done { .. }, _) => return false,
            (State::Running { .. }, End::Record { record, keep }) => {
                (body(record).filter(|_| !row.forgotten), *keep)
            }
            (State::Running { .. }, _) if row.forgotten => (None, Keep::CONVERSATION),
            (State::Running { .. }, _) => {
                self.rows.retain(|_, row| row.grant != grant);
                return true;
            }
        };
        row.state = State::Done { body, since, keep };
        true
    }

    pub(crate) fn look(&self, key: u8) -> Seen {
        let Some(row) = self.rows.get(&key).filter(|row| !self.has_ended(row)) else {
            return Seen::Absent;
        };
        match &row.state {
            State::Running { until } => Seen::Running(until.saturating_sub(self.now)),
            State::Done { body, .. } => Seen::Done(body.clone()),
        }
    }

    pub(crate) fn forget(&mut self, conversation: u8) -> u64 {
        self.clear();
        let mut concerned = 0;
        for row in self.rows.values_mut() {
            if row.conversation == Some(conversation) {
                concerned += 1;
                row.forgotten = true;
                row.state.lose_body();
            }
        }
        concerned
    }

    pub(crate) fn close(&mut self, conversation: u8) {
        self.clear();
        self.latest.insert(conversation, self.now);
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
            .values()
            .filter(|row| !self.has_ended(row))
            .count()
    }

    pub(crate) fn bytes(&self) -> usize {
        let live = self.rows.values().filter(|row| !self.has_ended(row));
        let size = |row: &Row| match &row.state {
            State::Done {
                body: Some(body), ..
            } => body.len(),
            State::Done { body: None, .. } | State::Running { .. } => 0,
        };
        live.map(size).sum()
    }

    fn row_of(&mut self, grant: usize) -> Option<&mut Row> {
        self.clear();
        self.rows.values_mut().find(|row| row.grant == grant)
    }

    fn clear(&mut self) {
        let mut rows = std::mem::take(&mut self.rows);
        rows.retain(|_, row| !self.has_ended(row));
        self.rows = rows;
    }

    fn has_ended(&self, row: &Row) -> bool {
        let State::Done { since, keep, .. } = &row.state else {
            return false;
        };
        match keep {
            Keep::Conversation { idle } => {
                let latest = row.conversation.and_then(|c| self.latest.get(&c));
                latest.map_or(*since, |latest| *since.max(latest)) + *idle <= self.now
            }
            Keep::For(time) => *since + *time <= self.now,
            _ => false,
        }
    }
}

impl State {
    fn lose_body(&mut self) {
        if let Self::Done { body, .. } = self {
            *body = None;
        }
    }
}

impl Row {
    fn first(ask: Ask, nonce: u8, grant: usize, until: Duration) -> Self {
        Self {
            grant,
            attempt: 1,
            nonce,
            print: ask.print,
            conversation: ask.conversation,
            forgotten: false,
            state: State::Running { until },
        }
    }
}

fn body(record: &Record) -> Option<String> {
    match record.payload() {
        Payload::Whole(whole) => Some(String::from_utf8(whole.frames.concat()).unwrap()),
        _ => None,
    }
}
