//! What was promised and what was seen: every break of a promise is noted.

use std::collections::HashSet;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use tokio::time::Instant;
use tower_idempotency::store::{
    Claim, End, Hold, MemoryStore, Settled, Settlement, Sight, Standing, Store, Token, Verdict,
};
use tower_idempotency::{Error, Key, Record};

use crate::channel::{LETTERS, key, letter};

/// A lease, by the process that it was given to: tokens alone do not tell leases apart where
/// tokens repeat.
type Holder = (usize, Token);

/// What is known about each message.
pub(crate) struct Ledger {
    /// For how long nobody may run what has lapsed.
    unknown_for: Duration,
    messages: [Message; LETTERS],
    /// Runs that a handler ended well, by message and token.
    handled: HashSet<(usize, Token)>,
    broken: Broken,
}

/// The first promise that was broken.
#[derive(Default)]
struct Broken(Option<String>);

impl Broken {
    fn note(&mut self, why: impl Display) {
        if self.0.is_none() {
            self.0 = Some(why.to_string());
        }
    }
}

#[derive(Default)]
struct Message {
    holder: Option<(Holder, Instant)>,
    record: Option<Arc<Record>>,
    /// The first success that a caller was given for this message alone.
    given: Option<Bytes>,
    /// Whether any caller was given a success.
    succeeded: bool,
}

impl Ledger {
    pub(crate) fn new(unknown_for: Duration) -> Self {
        Self {
            unknown_for,
            messages: Default::default(),
            handled: HashSet::default(),
            broken: Broken::default(),
        }
    }

    /// Applies a claim, and checks promises 2 and 4: no lease while another's has not lapsed,
    /// none after a success. Where unknown outcomes are parked, a run that had no end is the last
    /// one until its time has passed.
    pub(crate) fn claim(
        &mut self,
        store: &MemoryStore,
        process: usize,
        claim: &Claim,
    ) -> Result<Vec<Verdict>, Error> {
        let verdicts = now(store.claim(claim))?;
        let until = Instant::now() + claim.lease;
        for verdict in &verdicts {
            if let Verdict::Run(lease) = verdict {
                self.granted((process, lease.token()), lease.key(), until);
            }
        }
        self.check_records(store);
        Ok(verdicts)
    }

    fn granted(&mut self, holder: Holder, key: &Key, until: Instant) {
        let message = &mut self.messages[letter(key)];
        if let Some((other, lapses)) = message.holder
            && other != holder
            && lapses + self.unknown_for > Instant::now()
        {
            self.broken.note(format_args!(
                "promise 2: {other:?} holds {key:?}, and {holder:?} was let run it"
            ));
        }
        if message.succeeded {
            self.broken.note(format_args!(
                "promise 4: {key:?} may run again after its success was given"
            ));
        }
        message.holder = Some((holder, until));
    }

    pub(crate) fn renew(
        &mut self,
        store: &MemoryStore,
        process: usize,
        (holds, lease): (&[Hold], Duration),
    ) -> Result<Vec<Standing>, Error> {
        let standings = now(store.renew(holds, lease))?;
        for (hold, standing) in holds.iter().zip(&standings) {
            if let Some((holder, until)) = &mut self.messages[letter(&hold.key)].holder
                && *holder == (process, hold.token)
                && *standing == Standing::Renewed
            {
                *until = Instant::now() + lease;
            }
        }
        Ok(standings)
    }

    /// Applies settlements, and checks that nothing is recorded that no handler has handled.
    pub(crate) fn settle(
        &mut self,
        store: &MemoryStore,
        process: usize,
        settlements: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        let settled = now(store.settle(settlements))?;
        for (settlement, settled) in settlements.iter().zip(&settled) {
            let Hold { key, token, .. } = &settlement.hold;
            let message = &mut self.messages[letter(key)];
            let is_holder = message
                .holder
                .is_some_and(|(by, _)| by == (process, *token));
            if *settled == Settled::Applied && is_holder {
                message.holder = None;
            }
            if matches!(settlement.end, End::Record { .. })
                && !self.handled.contains(&(letter(key), *token))
            {
                self.broken.note(format_args!(
                    "promise 8: {key:?} is recorded and was not handled"
                ));
            }
        }
        self.check_records(store);
        Ok(settled)
    }

    /// A handler has done its work on a message.
    pub(crate) fn handled(&mut self, key: &Key, token: Token) {
        self.handled.insert((letter(key), token));
    }

    /// A caller was given a success: each of its messages is done (promise 8), and the body is the
    /// one that was given before (promise 3).
    pub(crate) fn succeeded(&mut self, store: &MemoryStore, letters: &str, body: &Bytes) {
        for name in letters.chars() {
            let key = key(name);
            let sights = now(store.look(std::slice::from_ref(&key))).unwrap_or_default();
            if !matches!(sights.as_slice(), [Sight::Done(_)]) {
                self.broken.note(format_args!(
                    "promise 8: a success for {key:?}, which is not done: {sights:?}"
                ));
            }
            if !self.handled.iter().any(|(at, _)| *at == letter(&key)) {
                self.broken.note(format_args!(
                    "promise 8: a success for {key:?}, which nobody handled"
                ));
            }
            self.messages[letter(&key)].succeeded = true;
        }
        let mut names = letters.chars();
        if let (Some(name), None) = (names.next(), names.next()) {
            let given = &mut self.messages[letter(&key(name))].given;
            let first = given.get_or_insert_with(|| body.clone());
            if first != body {
                self.broken.note(format_args!(
                    "promise 3: {first:?} was given for {name}, and then {body:?}"
                ));
            }
        }
    }

    /// Notes a break. The first one counts.
    pub(crate) fn breaks(&mut self, why: impl Display) {
        self.broken.note(why);
    }

    pub(crate) fn broken(&self) -> Option<&str> {
        self.broken.0.as_deref()
    }

    /// Promise 1: a record stays, and stays the same.
    fn check_records(&mut self, store: &MemoryStore) {
        let keys: Vec<Key> = ('a'..='b').map(key).collect();
        let sights = now(store.look(&keys)).unwrap_or_default();
        for (message, sight) in self.messages.iter_mut().zip(sights) {
            let seen = match sight {
                Sight::Done(record) => Some(record),
                Sight::Absent | Sight::Running { .. } | _ => None,
            };
            match (&message.record, seen) {
                (None, seen) => message.record = seen,
                (Some(record), Some(seen)) if Arc::ptr_eq(record, &seen) || *record == seen => {}
                (Some(_), seen) => {
                    self.broken
                        .note(format_args!("promise 1: a record became {seen:?}"));
                }
            }
        }
    }
}

/// The answer of a store that answers at once.
pub(crate) fn now<T>(call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    call.now_or_never()
        .unwrap_or_else(|| Err(Error::overdue("not at once")))
}
