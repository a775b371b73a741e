//! The inbox as its users see it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::error::Error;
use crate::key::Key;
use crate::store::lease::Standing;
use crate::store::postgres::id::Id;
use crate::store::postgres::inbox::accept::{AcceptCall, Coming};
use crate::store::postgres::inbox::desk::Inbox;
use crate::store::postgres::inbox::turns::{self, RenewCall};
use crate::store::postgres::store::PostgresStore;
use crate::store::queue::arrival::{Accepted, Arrival};
use crate::store::queue::backlog::{Backlog, DeadLetter, Death};
use crate::store::queue::contract::Queue;
use crate::store::queue::turn::{Onward, Report, Turn, TurnHold, Waiting};

/// Accepting and reporting are one round trip each; calls that wait go together. The store's clock
/// is the server's.
impl Queue for PostgresStore {
    fn is_durable(&self) -> bool {
        true
    }

    async fn accept(
        &self,
        arrivals: &[Arrival],
        lease: Option<Duration>,
    ) -> Result<Vec<Accepted>, Error> {
        self.start_sweeper();
        self.inbox().accept(arrivals, lease).await
    }

    async fn take(
        &self,
        lines: usize,
        messages: usize,
        lease: Duration,
    ) -> Result<Vec<Turn>, Error> {
        self.start_sweeper();
        let inbox = self.inbox();
        let taken = turns::take(&inbox.database, (lines, messages), lease);
        inbox.within_limit(taken).await
    }

    async fn renew_turns(
        &self,
        turns: &[TurnHold],
        lease: Duration,
    ) -> Result<Vec<Standing>, Error> {
        if turns.is_empty() {
            return Ok(Vec::new());
        }
        let call = RenewCall::new(turns, lease);
        self.inbox().renewals.ask(call).await
    }

    async fn report(&self, reports: &[Report]) -> Result<Vec<Onward>, Error> {
        if reports.is_empty() {
            return Ok(Vec::new());
        }
        self.inbox().tidy.note(reports.len());
        self.inbox().reports.ask(reports.to_vec()).await
    }

    async fn kept(&self, key: &Key) -> Result<Option<Bytes>, Error> {
        let inbox = self.inbox();
        let asked = inbox.chores.kept(&inbox.database, Id::of_key(key));
        inbox.within_limit(asked).await
    }

    async fn backlog(&self) -> Result<Backlog, Error> {
        let inbox = self.inbox();
        let asked = inbox.chores.backlog(&inbox.database);
        inbox.within_limit(asked).await
    }

    async fn waiting(&self, limit: usize) -> Result<Vec<Waiting>, Error> {
        let inbox = self.inbox();
        let asked = inbox.chores.waiting(&inbox.database, limit);
        inbox.within_limit(asked).await
    }

    async fn dead(&self, after: Option<Death>, limit: usize) -> Result<Vec<DeadLetter>, Error> {
        let inbox = self.inbox();
        let asked = inbox.chores.dead(&inbox.database, after, limit);
        inbox.within_limit(asked).await
    }

    async fn redrive(&self, deaths: &[Death]) -> Result<u64, Error> {
        let inbox = self.inbox();
        let asked = inbox.chores.redrive(&inbox.database, deaths);
        inbox.within_limit(asked).await
    }

    async fn bury(&self, deaths: &[Death]) -> Result<u64, Error> {
        let inbox = self.inbox();
        let asked = inbox.chores.bury(&inbox.database, deaths);
        inbox.within_limit(asked).await
    }

    fn outbox(&self) -> Option<Self> {
        Some(self.outbox_store())
    }

    fn news(&self) -> Option<Arc<Notify>> {
        Some(self.news_of_effects())
    }
}

/// How many messages of a call one statement carries: with those of other calls fewer than there
/// are places for one number.
const AT_ONCE: usize = 10_000;

/// How often a message is accepted whose key goes away at that very moment.
const ROUNDS: u32 = 5;

impl Inbox {
    async fn accept(
        &self,
        arrivals: &[Arrival],
        lease: Option<Duration>,
    ) -> Result<Vec<Accepted>, Error> {
        let mut answers = Vec::with_capacity(arrivals.len());
        for some in arrivals.chunks(AT_ONCE) {
            answers.extend(self.accept_some(some, lease).await?);
        }
        Ok(answers)
    }

    async fn accept_some(
        &self,
        arrivals: &[Arrival],
        lease: Option<Duration>,
    ) -> Result<Vec<Accepted>, Error> {
        let began = Instant::now();
        let coming: Vec<Coming> = arrivals.iter().map(Coming::of).collect();
        let mut answers: Vec<Option<Accepted>> = vec![None; coming.len()];
        for round in 0..ROUNDS {
            let open = coming.iter().zip(&answers);
            let open = open.filter(|(_, answer)| answer.is_none());
            let open: Vec<Coming> = open.map(|(coming, _)| coming.clone()).collect();
            if open.is_empty() || began.elapsed() > self.limit() {
                break;
            }
            if round > 0 {
                sleep(Duration::from_millis(1 << round)).await;
            }
            let call = AcceptCall {
                arrivals: open,
                lease,
            };
            let missing = answers.iter_mut().filter(|answer| answer.is_none());
            for (place, answer) in missing.zip(self.accepts.ask(call).await?) {
                *place = answer;
            }
        }
        let changing = || Error::unavailable("a key's row changed each time it was accepted");
        answers
            .into_iter()
            .collect::<Option<_>>()
            .ok_or_else(changing)
    }
}
