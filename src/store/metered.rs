//! A store whose calls are measured: how long each took, and what it said.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;

use crate::error::Error;
use crate::key::{Conversation, Key};
use crate::store::contract::{Claim, Sight, Store, Verdict};
use crate::store::lease::{End, Hold, Settled, Settlement, Standing, Token};
use crate::store::loan::Loan;
use crate::store::queue::arrival::{Accepted, Arrival, Stage};
use crate::store::queue::backlog::{Backlog, DeadLetter, Death};
use crate::store::queue::contract::Queue;
use crate::store::queue::turn::{Onward, Report, Turn, TurnHold, Waiting};
use crate::watch::emit::{Stopwatch, count};
use crate::watch::metric::{ENDS, INBOX_ARRIVALS, RENEWALS, STORE_SECONDS, TAKEOVERS};

/// A store whose calls are measured. It answers as the store inside does.
#[derive(Clone, Debug)]
pub(crate) struct Watched<S>(S);

/// Measures the calls of a store.
pub(crate) fn watched<S>(store: S) -> Watched<S> {
    Watched(store)
}

#[deny(clippy::missing_trait_methods)]
impl<S: Store> Store for Watched<S> {
    async fn claim(&self, claim: &Claim) -> Result<Vec<Verdict>, Error> {
        let verdicts = timed("claim", self.0.claim(claim)).await?;
        for verdict in &verdicts {
            if let Verdict::Run(lease) = verdict
                && lease.attempt() > 1
            {
                count(TAKEOVERS, [lease.key().channel()], 1);
            }
        }
        Ok(verdicts)
    }

    async fn renew(&self, holds: &[Hold], lease: Duration) -> Result<Vec<Standing>, Error> {
        let standings = timed("renew", self.0.renew(holds, lease)).await?;
        if lease.is_zero() {
            for (hold, standing) in holds.iter().zip(&standings) {
                let end = match standing {
                    Standing::Renewed => "parked",
                    Standing::Lost => "superseded",
                };
                count(ENDS, [hold.key.channel(), end], 1);
            }
        } else {
            count_renewals("lease", &standings);
        }
        Ok(standings)
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Settled>, Error> {
        let settled = timed("settle", self.0.settle(settlements)).await?;
        for (settlement, settled) in settlements.iter().zip(&settled) {
            let end = match (&settlement.end, settled) {
                (End::Record { .. }, Settled::Applied) => "recorded",
                (End::Release, Settled::Applied) => "released",
                (_, Settled::Superseded) => "superseded",
            };
            count(ENDS, [settlement.hold.key.channel(), end], 1);
        }
        Ok(settled)
    }

    async fn look(&self, keys: &[Key]) -> Result<Vec<Sight>, Error> {
        timed("look", self.0.look(keys)).await
    }

    async fn forget(&self, conversation: &Conversation) -> Result<u64, Error> {
        timed("forget", self.0.forget(conversation)).await
    }

    async fn close(&self, conversation: &Conversation) -> Result<(), Error> {
        timed("close", self.0.close(conversation)).await
    }

    async fn sweep(&self, limit: usize) -> Result<u64, Error> {
        timed("sweep", self.0.sweep(limit)).await
    }

    /// As it is, since handlers ask for its kind; its end is measured by whoever ends it.
    fn loan(&self, run: Token) -> Option<Arc<dyn Loan>> {
        self.0.loan(run)
    }
}

#[deny(clippy::missing_trait_methods)]
impl<S: Queue> Queue for Watched<S> {
    fn is_durable(&self) -> bool {
        self.0.is_durable()
    }

    async fn accept(
        &self,
        arrivals: &[Arrival],
        lease: Option<Duration>,
    ) -> Result<Vec<Accepted>, Error> {
        let accepted = timed("accept", self.0.accept(arrivals, lease)).await?;
        for (arrival, accepted) in arrivals.iter().zip(&accepted) {
            let stage = match accepted {
                Accepted::New { .. } => "new",
                Accepted::Repeat(Stage::Waiting) => "waiting",
                Accepted::Repeat(Stage::Done) => "done",
                Accepted::Repeat(Stage::Dead) => "dead",
            };
            count(INBOX_ARRIVALS, [arrival.key.channel(), stage], 1);
        }
        Ok(accepted)
    }

    async fn take(
        &self,
        lines: usize,
        messages: usize,
        lease: Duration,
    ) -> Result<Vec<Turn>, Error> {
        timed("take", self.0.take(lines, messages, lease)).await
    }

    async fn renew_turns(
        &self,
        turns: &[TurnHold],
        lease: Duration,
    ) -> Result<Vec<Standing>, Error> {
        let standings = timed("renew_turns", self.0.renew_turns(turns, lease)).await?;
        count_renewals("turn", &standings);
        Ok(standings)
    }

    async fn report(&self, reports: &[Report]) -> Result<Vec<Onward>, Error> {
        timed("report", self.0.report(reports)).await
    }

    async fn kept(&self, key: &Key) -> Result<Option<Bytes>, Error> {
        timed("kept", self.0.kept(key)).await
    }

    async fn backlog(&self) -> Result<Backlog, Error> {
        timed("backlog", self.0.backlog()).await
    }

    async fn waiting(&self, limit: usize) -> Result<Vec<Waiting>, Error> {
        timed("waiting", self.0.waiting(limit)).await
    }

    async fn dead(&self, after: Option<Death>, limit: usize) -> Result<Vec<DeadLetter>, Error> {
        timed("dead", self.0.dead(after, limit)).await
    }

    async fn redrive(&self, deaths: &[Death]) -> Result<u64, Error> {
        timed("redrive", self.0.redrive(deaths)).await
    }

    async fn bury(&self, deaths: &[Death]) -> Result<u64, Error> {
        timed("bury", self.0.bury(deaths)).await
    }

    fn outbox(&self) -> Option<Self> {
        self.0.outbox().map(Watched)
    }

    fn news(&self) -> Option<Arc<Notify>> {
        self.0.news()
    }
}

/// A call of the store, measured: also one that is given up because its time is over.
pub(crate) async fn timed<T>(
    operation: &'static str,
    call: impl Future<Output = Result<T, Error>> + Send,
) -> Result<T, Error> {
    let mut timing = Timing {
        operation,
        result: "unanswered",
        watch: Stopwatch::start(),
    };
    let answer = call.await;
    timing.result = if answer.is_ok() { "ok" } else { "failed" };
    answer
}

struct Timing {
    operation: &'static str,
    result: &'static str,
    watch: Stopwatch,
}

impl Drop for Timing {
    fn drop(&mut self) {
        self.watch
            .stop(STORE_SECONDS, [self.operation, self.result]);
    }
}

fn count_renewals(of: &str, standings: &[Standing]) {
    let lost = standings.iter().filter(|it| **it == Standing::Lost).count();
    for (result, n) in [("renewed", standings.len() - lost), ("lost", lost)] {
        if n > 0 {
            count(RENEWALS, [of, result], u64::try_from(n).unwrap_or(u64::MAX));
        }
    }
}
