//! The inbox: keys, lines, and dead messages, behind one mutex.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use crate::key::Key;
use crate::record::Keep;
use crate::store::lease::{Standing, Token};
use crate::store::memory::line::{LineRow, Message, waiting};
use crate::store::memory::moment::Moment;
use crate::store::queue::arrival::{Accepted, Arrival, Line, Place, Stage};
use crate::store::queue::backlog::{Backlog, DeadLetter, Death};
use crate::store::queue::turn::{Ended, Onward, Report, Then, Turn, TurnHold, Waiting};

/// The inbox of a [`MemoryStore`](crate::store::MemoryStore).
#[derive(Debug, Default)]
pub(super) struct Inbox(Mutex<Rows>);

/// Everything that the inbox keeps.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) seen: HashMap<Key, Seen>,
    /// When the retention of a key ends, at the earliest.
    pub(super) ends: BTreeSet<(Moment, Key)>,
    pub(super) lives: HashMap<Line, Life>,
    pub(super) lines: HashMap<Line, LineRow>,
    due: BTreeSet<(Moment, Line)>,
    pub(super) dead: BTreeMap<Death, Dead>,
    places: i64,
    deaths: i64,
    pub(super) bytes: usize,
}

/// A key that was accepted.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) line: Line,
    pub(super) stage: Stage,
    pub(super) ends: Moment,
    pub(super) idle: Option<Duration>,
    /// The request of a message that is done, where it is kept.
    pub(super) raw: Option<Bytes>,
}

/// A conversation that has keys.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) heard: Moment,
    pub(super) keys: usize,
}

#[derive(Debug)]
pub(super) struct Dead {
    pub(super) line: Line,
    pub(super) message: Message,
    attempts: u32,
    fault: String,
    died_at: SystemTime,
}

impl Inbox {
    pub(super) fn rows(&self) -> MutexGuard<'_, Rows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rows {
    /// How many keys and bytes of messages are kept.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.seen.len(), self.bytes)
    }

    /// How many of these are no repeats.
    pub(super) fn count_new(&self, arrivals: &[Arrival]) -> usize {
        let is_new = |arrival: &&Arrival| !self.seen.contains_key(&arrival.key);
        arrivals.iter().filter(is_new).count()
    }

    pub(super) fn accept(
        &mut self,
        arrival: &Arrival,
        now: Moment,
        lend: Option<(Duration, &dyn Fn() -> Token)>,
    ) -> Accepted {
        let line = arrival.line();
        if let Some(seen) = self.seen.get(&arrival.key) {
            let stage = seen.stage;
            if !self.has_ended(&arrival.key, now) {
                return Accepted::Repeat(stage);
            }
            self.remove_key(&arrival.key);
        }
        self.see(arrival, line, now);
        let place = self.next_place();
        let message = Message::new(arrival.key.clone(), wall_clock(), arrival.raw.clone());
        self.bytes += message.raw.len();
        let begins = !self.lines.contains_key(&line);
        let mut turn = None;
        self.change(line, now, |row| {
            row.join(place, message, now);
            if begins && let Some((lease, next_token)) = lend {
                let token = next_token();
                row.lend(token, now.plus(lease));
                turn = Some(token);
            }
        });
        Accepted::New { place, turn }
    }

    fn see(&mut self, arrival: &Arrival, line: Line, now: Moment) {
        let (time, idle) = match (arrival.keep, &arrival.conversation) {
            (Keep::For(time), _) => (time, None),
            (Keep::Conversation { idle }, Some(_)) => (idle, Some(idle)),
            (Keep::Conversation { idle }, None) => (idle, None),
        };
        let ends = now.plus(time);
        let seen = Seen {
            line,
            stage: Stage::Waiting,
            ends,
            idle,
            raw: None,
        };
        let known = self.lives.entry(line).or_insert(Life {
            heard: now,
            keys: 0,
        });
        known.heard = now;
        known.keys += 1;
        self.ends.insert((ends, arrival.key.clone()));
        self.seen.insert(arrival.key.clone(), seen);
    }

    fn next_place(&mut self) -> Place {
        self.places += 1;
        Place::new(self.places)
    }

    /// Changes a line's row, which is made if need be and goes when it is over.
    pub(super) fn change<T>(
        &mut self,
        line: Line,
        now: Moment,
        change: impl FnOnce(&mut LineRow) -> T,
    ) -> T {
        let row = self.lines.entry(line).or_insert_with(|| LineRow::new(now));
        self.due.remove(&(row.due(), line));
        let answer = change(row);
        if row.is_over() {
            self.lines.remove(&line);
        } else {
            self.due.insert((row.due(), line));
        }
        answer
    }

    pub(super) fn take(
        &mut self,
        (lines, messages): (usize, usize),
        (now, lease): (Moment, Duration),
        next_token: impl Fn() -> Token,
    ) -> Vec<Turn> {
        let due = self.due.iter().take_while(|(at, _)| *at <= now);
        let due: Vec<Line> = due.take(lines).map(|(_, line)| *line).collect();
        let take = |line| {
            self.change(line, now, |row| {
                let hold = TurnHold::new(line, next_token());
                let overdue = row.overdue(now);
                row.lend(hold.token, now.plus(lease));
                Turn::new(hold, overdue, row.ready(messages, now))
            })
        };
        due.into_iter().map(take).collect()
    }

    pub(super) fn renew(&mut self, hold: TurnHold, now: Moment, lease: Duration) -> Standing {
        if !self.is_turn(hold) {
            return Standing::Lost;
        }
        self.change(hold.line, now, |row| row.renew(now.plus(lease)));
        Standing::Renewed
    }

    fn is_turn(&self, hold: TurnHold) -> bool {
        let row = self.lines.get(&hold.line);
        row.is_some_and(|row| row.is_turn(hold.token))
    }

    pub(super) fn report(&mut self, report: &Report, now: Moment) -> Onward {
        let line = report.hold.line;
        if !self.is_turn(report.hold) {
            return Onward::Lost;
        }
        if let Some((place, ended)) = &report.ended {
            self.end(line, *place, ended, now);
        }
        self.change(line, now, |row| {
            if !row.is_turn(report.hold.token) {
                return Onward::Ended;
            }
            let next = match report.then {
                Then::GoOn => return Onward::Next(Vec::new()),
                Then::Read(most) => row.ready(most, now),
                Then::GiveBack => Vec::new(),
            };
            if next.is_empty() {
                row.give_back(now);
                return Onward::Ended;
            }
            Onward::Next(next)
        })
    }

    fn end(&mut self, line: Line, place: Place, ended: &Ended, now: Moment) {
        match ended {
            Ended::Done => {
                let message = self.change(line, now, |row| row.remove(place));
                if let Some(message) = message {
                    self.leave(&message, Stage::Done);
                }
            }
            Ended::Kept => {
                let message = self.change(line, now, |row| row.remove(place));
                if let Some(message) = message {
                    self.stay(message);
                }
            }
            Ended::Later {
                after,
                attempt,
                fault,
                behind,
            } => {
                let until = (now.plus(*after), *behind);
                self.change(line, now, |row| {
                    row.put_off(place, (*attempt, fault), until);
                });
            }
            Ended::Dead { attempt, fault } => {
                let message = self.change(line, now, |row| row.remove(place));
                if let Some(message) = message {
                    self.die(line, message, (*attempt, fault));
                }
            }
        }
    }

    /// A message leaves its line for good.
    pub(super) fn leave(&mut self, message: &Message, stage: Stage) {
        self.bytes -= message.raw.len();
        self.set_stage(&message.key, stage);
    }

    /// A message leaves its line, and its request stays with its key.
    fn stay(&mut self, message: Message) {
        if let Some(seen) = self.seen.get_mut(&message.key) {
            seen.stage = Stage::Done;
            seen.raw = Some(message.raw);
        }
    }

    pub(super) fn kept(&self, key: &Key) -> Option<Bytes> {
        self.seen.get(key)?.raw.clone()
    }

    fn set_stage(&mut self, key: &Key, stage: Stage) {
        if let Some(seen) = self.seen.get_mut(key) {
            seen.stage = stage;
        }
    }

    fn die(&mut self, line: Line, message: Message, (attempts, fault): (u32, &str)) {
        self.set_stage(&message.key, Stage::Dead);
        self.deaths += 1;
        let dead = Dead {
            line,
            message,
            attempts,
            fault: fault.to_owned(),
            died_at: wall_clock(),
        };
        self.dead.insert(Death::new(self.deaths), dead);
    }

    pub(super) fn backlog(&self) -> Backlog {
        let all = || self.lines.values().flat_map(LineRow::messages);
        let oldest = all().map(|(_, message)| message.received_at).min();
        let oldest = oldest.map(|at| at.elapsed().unwrap_or_default());
        let lines = self.lines.values();
        let lines = lines.filter(|row| row.messages().next().is_some()).count();
        Backlog::new(
            number(all().count()),
            number(lines),
            number(self.dead.len()),
            oldest,
        )
    }

    pub(super) fn waiting(&self, limit: usize) -> Vec<Waiting> {
        let all = self.lines.values().flat_map(LineRow::messages);
        let mut all: Vec<_> = all
            .map(|(place, message)| waiting(*place, message, 0))
            .collect();
        all.sort_unstable_by_key(|waiting| waiting.place);
        all.truncate(limit);
        all
    }

    pub(super) fn dead(&self, after: Option<Death>, limit: usize) -> Vec<DeadLetter> {
        let behind = self.dead.iter().filter(|(death, _)| Some(**death) > after);
        behind
            .take(limit)
            .map(|(death, dead)| {
                let message = waiting(Place::new(0), &dead.message, 0)
                    .tried(dead.attempts, Some(dead.fault.clone()));
                DeadLetter::new(*death, message, dead.died_at)
            })
            .collect()
    }

    pub(super) fn redrive(&mut self, death: Death, now: Moment) -> u64 {
        let Some(Dead { line, message, .. }) = self.dead.remove(&death) else {
            return 0;
        };
        self.set_stage(&message.key, Stage::Waiting);
        let place = self.next_place();
        let message = message.anew();
        self.change(line, now, |row| row.join(place, message, now));
        1
    }

    pub(super) fn bury(&mut self, death: Death) -> u64 {
        let Some(dead) = self.dead.remove(&death) else {
            return 0;
        };
        self.leave(&dead.message, Stage::Done);
        1
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this store's clock is the machine's; the time is for reading, and decides nothing"
)]
fn wall_clock() -> SystemTime {
    SystemTime::now()
}

pub(super) fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
