//! What was promised and what was seen: every break of a promise is noted.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::Instant;
use tower_idempotency::Error;
use tower_idempotency::store::{
    Accepted, Arrival, Death, Ended, Line, MemoryStore, Onward, Place, Queue, Report, Standing,
    Then, Token, Turn, TurnHold,
};

use crate::plan::{ATTEMPTS, MESSAGES};

/// What is known about everything.
#[derive(Default)]
pub(crate) struct Ledger {
    messages: [Message; MESSAGES],
    places: HashMap<Place, usize>,
    turns: HashMap<Line, (Token, Instant)>,
    /// Runs that a handler ended well, by message and token.
    handled: HashSet<(usize, Token)>,
    pub(crate) reached: [u64; REACHED.len()],
    broken: Option<String>,
}

/// What the schedules are to come to.
pub(crate) const REACHED: [Came; 7] = [
    Came::Accepted,
    Came::Repeat,
    Came::Given,
    Came::TakenOver,
    Came::Done,
    Came::Dead,
    Came::Undone,
];

/// Something that the schedules are to come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    Accepted,
    Repeat,
    /// A turn was given with the answer to a sender's message.
    Given,
    TakenOver,
    Done,
    Dead,
    /// A death was undone.
    Undone,
}

impl Came {
    fn place(self) -> usize {
        REACHED.iter().position(|came| *came == self).unwrap()
    }
}

#[derive(Default)]
struct Message {
    is_accepted: bool,
    is_done: bool,
    has_died: bool,
    /// Runs that began since it was accepted or redriven.
    runs: u32,
    first_sent: Option<Instant>,
    acked: Option<Instant>,
}

impl Ledger {
    pub(crate) fn breaks(&mut self, why: impl Display) {
        if self.broken.is_none() {
            self.broken = Some(why.to_string());
        }
    }

    pub(crate) fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    fn came(&mut self, what: Came) {
        self.reached[what.place()] += 1;
    }

    pub(crate) fn sent(&mut self, message: usize) {
        let first = &mut self.messages[message].first_sent;
        first.get_or_insert_with(Instant::now);
    }

    /// A 2xx means stored.
    pub(crate) fn acked(&mut self, message: usize) {
        if !self.messages[message].is_accepted {
            self.breaks(format_args!(
                "message {message} is acknowledged and not stored"
            ));
        }
        let acked = &mut self.messages[message].acked;
        acked.get_or_insert_with(Instant::now);
    }

    /// A handler begins, in a process that runs.
    pub(crate) fn begins(
        &mut self,
        message: usize,
        (line, token, attempt): (Line, Token, u32),
        chats: &[usize; MESSAGES],
    ) {
        if self
            .turns
            .get(&line)
            .is_none_or(|(current, _)| *current != token)
        {
            self.breaks(format_args!(
                "message {message} begins in a turn that is lost"
            ));
        }
        if self.messages[message].is_done {
            self.breaks(format_args!("message {message} is done, and begins again"));
        }
        self.messages[message].runs += 1;
        let runs = self.messages[message].runs;
        if attempt < runs {
            self.breaks(format_args!(
                "message {message} is told of attempt {attempt} at run {runs}"
            ));
        }
        if attempt > ATTEMPTS {
            self.breaks(format_args!(
                "message {message} begins its attempt {attempt}"
            ));
        }
        for (before, chat) in chats.iter().enumerate() {
            if before != message && *chat == chats[message] && self.must_wait(message, before) {
                self.breaks(format_args!(
                    "message {message} begins before message {before}"
                ));
            }
        }
    }

    /// Whether `before` was acknowledged before `message` was sent, and has not come to its end.
    fn must_wait(&self, message: usize, before: usize) -> bool {
        let (message, before) = (&self.messages[message], &self.messages[before]);
        let in_order = before.acked.zip(message.first_sent);
        in_order.is_some_and(|(acked, sent)| acked < sent) && !before.is_done && !before.has_died
    }

    /// A handler has ended well.
    pub(crate) fn handled(&mut self, message: usize, token: Token) {
        self.handled.insert((message, token));
    }

    /// What was acknowledged and is not at its end.
    pub(crate) fn unfinished(&self) -> Option<usize> {
        self.messages
            .iter()
            .position(|message| message.acked.is_some() && !message.is_done)
    }

    pub(crate) fn accept(
        &mut self,
        store: &MemoryStore,
        (arrivals, lease): (&[Arrival], Option<Duration>),
    ) -> Result<Vec<Accepted>, Error> {
        let answers = now(store.accept(arrivals, lease))?;
        for (arrival, accepted) in arrivals.iter().zip(&answers) {
            let message: usize = arrival.key.id().parse().unwrap();
            match *accepted {
                Accepted::New { place, turn } => {
                    self.came(Came::Accepted);
                    self.places.insert(place, message);
                    self.is_new(message);
                    self.is_given(arrival.line(), turn.zip(lease));
                }
                Accepted::Repeat(_) | _ => self.came(Came::Repeat),
            }
        }
        Ok(answers)
    }

    fn is_new(&mut self, message: usize) {
        if std::mem::replace(&mut self.messages[message].is_accepted, true) {
            self.breaks(format_args!("message {message} is new twice"));
        }
    }

    fn is_given(&mut self, line: Line, turn: Option<(Token, Duration)>) {
        if let Some((token, lease)) = turn {
            self.came(Came::Given);
            self.granted(TurnHold::new(line, token), lease);
        }
    }

    /// Never two unexpired turns of one line.
    fn granted(&mut self, hold: TurnHold, lease: Duration) {
        let now = Instant::now();
        let before = self.turns.insert(hold.line, (hold.token, now + lease));
        let Some((token, until)) = before else {
            return;
        };
        self.came(Came::TakenOver);
        if until > now {
            self.breaks(format_args!(
                "a turn is given while another's has not lapsed"
            ));
        }
        if token >= hold.token {
            self.breaks(format_args!("a token does not rise"));
        }
    }

    pub(crate) fn take(
        &mut self,
        store: &MemoryStore,
        (lines, messages, lease): (usize, usize, Duration),
    ) -> Result<Vec<Turn>, Error> {
        let turns = now(store.take(lines, messages, lease))?;
        for turn in &turns {
            self.granted(turn.hold, lease);
            self.learn_places(store);
        }
        Ok(turns)
    }

    pub(crate) fn renew(
        &mut self,
        store: &MemoryStore,
        (holds, lease): (&[TurnHold], Duration),
    ) -> Result<Vec<Standing>, Error> {
        let standings = now(store.renew_turns(holds, lease))?;
        for (hold, standing) in holds.iter().zip(&standings) {
            if *standing == Standing::Renewed {
                self.is_current(*hold, "renewed");
                self.turns
                    .insert(hold.line, (hold.token, Instant::now() + lease));
            }
        }
        Ok(standings)
    }

    fn is_current(&mut self, hold: TurnHold, what: &str) {
        let current = self.turns.get(&hold.line).map(|(token, _)| *token);
        if current != Some(hold.token) {
            self.breaks(format_args!("a turn that was taken over is {what}"));
        }
    }

    pub(crate) fn report(
        &mut self,
        store: &MemoryStore,
        reports: &[Report],
    ) -> Result<Vec<Onward>, Error> {
        let onwards = now(store.report(reports))?;
        for (report, onward) in reports.iter().zip(&onwards) {
            if *onward == Onward::Lost {
                continue;
            }
            self.is_current(report.hold, "reported on");
            if let Some((place, ended)) = &report.ended {
                self.ended(report.hold, *place, ended);
            }
            if *onward == Onward::Ended {
                self.turns.remove(&report.hold.line);
            } else if report.then == Then::GiveBack {
                self.breaks("a turn that is given back goes on");
            }
        }
        Ok(onwards)
    }

    fn ended(&mut self, hold: TurnHold, place: Place, ended: &Ended) {
        let Some(&message) = self.places.get(&place) else {
            return self.breaks("a message ends that was not accepted");
        };
        match ended {
            Ended::Done | Ended::Kept => {
                if !self.handled.contains(&(message, hold.token)) {
                    self.breaks(format_args!(
                        "message {message} is done and was not handled"
                    ));
                }
                if !std::mem::replace(&mut self.messages[message].is_done, true) {
                    self.came(Came::Done);
                }
            }
            Ended::Dead { .. } => {
                self.messages[message].has_died = true;
                self.came(Came::Dead);
            }
            Ended::Later { .. } | _ => {}
        }
    }

    /// A redrive undoes what it names and nothing else.
    pub(crate) fn redrive(&mut self, store: &MemoryStore, deaths: &[Death]) -> Result<u64, Error> {
        let all = |store: &MemoryStore| {
            let letters = now(store.dead(None, 100)).unwrap();
            letters
                .into_iter()
                .map(|letter| letter.death)
                .collect::<HashSet<_>>()
        };
        let before = all(store);
        let undone = now(store.redrive(deaths))?;
        let after = all(store);
        for death in &before {
            if !after.contains(death) && !deaths.contains(death) {
                self.breaks(format_args!("{death:?} is undone and was not named"));
            }
        }
        self.reached[Came::Undone.place()] += undone;
        self.learn_places(store);
        self.begin_anew(store, before.difference(&after).count() > 0);
        Ok(undone)
    }

    /// Messages that were redriven have all their attempts before them: those that wait again and
    /// have had none.
    fn begin_anew(&mut self, store: &MemoryStore, is_redriven: bool) {
        let waiting = now(store.waiting(100)).unwrap();
        for waiting in waiting.iter().filter(|_| is_redriven) {
            let message = crate::store::message_of(&waiting.raw);
            if waiting.attempt == 1 && self.messages[message].has_died {
                self.messages[message].runs = 0;
            }
        }
    }

    /// A redriven message has a new place, which only the list of what waits tells.
    fn learn_places(&mut self, store: &MemoryStore) {
        for waiting in now(store.waiting(100)).unwrap() {
            let message = crate::store::message_of(&waiting.raw);
            self.places.insert(waiting.place, message);
        }
    }
}

/// The memory store answers at once.
pub(crate) fn now<T>(answer: impl Future<Output = T>) -> T {
    answer.now_or_never().unwrap()
}
