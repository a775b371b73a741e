//! The end of a run: record first, then answer.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http::response::Parts;
use http_body::Body;
use tokio::time::{Instant, sleep};

use crate::body::response::ResponseBody;
use crate::channel::contract::{Ack, Channel};
use crate::claimed::Claimed;
use crate::error::BoxError;
use crate::flow::claim::{Granted, busy};
use crate::flow::context::{Asked, Context};
use crate::flow::recording::{ack_record, too_large_record, whole_record};
use crate::flow::run::{Collected, Produced};
use crate::flow::stream;
use crate::key::Key;
use crate::policy::{
    OnUnconfirmed, Outcome, RETRY_SOON, SETTLE_TRIES, give_up_settling_after, obey,
    settle_again_after,
};
use crate::record::{Keep, Record};
use crate::reply::Problem;
use crate::store::contract::{End, Hold, Lease, Settled, Settlement, Sight, Store};
use crate::underway::Mine;

/// What became of the end of a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Confirmed {
    /// It is in force.
    Applied,
    /// These messages were taken over by other runs.
    Superseded(Vec<Key>),
    /// The store did not say. It is asked again in the background.
    Unconfirmed,
}

/// How a run ends, and what repeats are given if its messages are done.
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    /// `None` where the answer is no success: a message that is done all the same has the
    /// channel's ack as its record.
    pub(crate) record: Option<Arc<Record>>,
}

impl Ended {
    pub(crate) const RELEASED: Self = Self {
        outcome: Outcome::Release,
        record: None,
    };
}

/// The right to end a run, spent by ending it.
pub(crate) struct Ending {
    leases: Vec<Lease>,
    claimed: Claimed,
    keep: Keep,
    ack: Ack,
    mine: Mine,
}

/// Settles a run and gives its answer: the handler's own only once the store has confirmed it.
pub(crate) async fn conclude<S, C, R, E>(
    (context, asked): (&Arc<Context<S, C>>, &Asked<'_>),
    granted: Granted,
    claimed: Claimed,
    produced: Produced<R, E>,
) -> Result<Response<ResponseBody<R>>, E>
where
    S: Store,
    C: Channel,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    let answering = Answering {
        context,
        asked,
        others: granted.busy,
    };
    let ending = Ending {
        leases: granted.leases.into_iter().map(|(_, lease)| lease).collect(),
        claimed,
        keep: asked.keep,
        ack: asked.terms.ack.clone(),
        mine: granted.mine,
    };
    match produced {
        Produced::Answer {
            parts,
            outcome,
            body,
        } => Ok(answering.answer(ending, parts, outcome, body).await),
        Produced::Failed(error) => {
            ending.settle(context, Ended::RELEASED).await;
            Err(error)
        }
        Produced::Panicked(panic) => {
            ending.settle(context, Ended::RELEASED).await;
            resume_unwind(panic)
        }
    }
}

/// What the answer of a run depends on, beside the run.
struct Answering<'a, S, C> {
    context: &'a Arc<Context<S, C>>,
    asked: &'a Asked<'a>,
    /// What is left of another run's lease, if a message of the request runs elsewhere.
    others: Option<Duration>,
}

impl<S: Store, C: Channel> Answering<'_, S, C> {
    async fn answer<R>(
        &self,
        ending: Ending,
        parts: Parts,
        outcome: Option<Outcome>,
        body: Collected<R>,
    ) -> Response<ResponseBody<R>>
    where
        R: Body<Data = Bytes> + Send + 'static,
        R::Error: Into<BoxError>,
    {
        let options = &self.context.options;
        let (ended, body) = match (body, outcome) {
            (Collected::Broken(error), _) => {
                tracing::warn!(%error, "the handler's response broke before its end");
                ending.settle(self.context, Ended::RELEASED).await;
                return self.asked.problem(&Problem::ResponseBroken);
            }
            (Collected::Untouched(body), _) => (Ended::RELEASED, ResponseBody::passed(body)),
            (Collected::Whole(whole), Some(Outcome::Release)) => {
                (Ended::RELEASED, ResponseBody::whole(whole))
            }
            (Collected::Whole(whole), Some(outcome)) => {
                let record = Some(Arc::new(whole_record(options, &parts, &whole)));
                (Ended { outcome, record }, ResponseBody::whole(whole))
            }
            (Collected::TooLarge(first, body), Some(outcome)) => {
                let record = Some(Arc::new(too_large_record(options, &parts)));
                (Ended { outcome, record }, ResponseBody::rest(first, body))
            }
            (Collected::Whole(whole), None) => (Ended::RELEASED, ResponseBody::whole(whole)),
            (Collected::Streaming(first, body) | Collected::TooLarge(first, body), _) => {
                let source = stream::Source::new(options, &parts, outcome, (first, body));
                let body = stream::begin(Arc::clone(self.context), ending, source);
                return Response::from_parts(parts, body);
            }
        };
        let is_recorded = ended.outcome != Outcome::Release;
        let partly = ending.releases_some();
        let confirmed = ending.settle(self.context, ended).await;
        let response = Response::from_parts(parts, body);
        match is_recorded {
            true => self.after(confirmed, response, partly).await,
            false => response,
        }
    }

    /// The answer to a run whose messages were to be recorded.
    async fn after<R>(
        &self,
        confirmed: Confirmed,
        response: Response<ResponseBody<R>>,
        partly: bool,
    ) -> Response<ResponseBody<R>> {
        let (context, asked) = (self.context, self.asked);
        let retry_after = RETRY_SOON;
        match (confirmed, context.options.on_unconfirmed) {
            (Confirmed::Superseded(keys), _) => match superseded(context, &keys).await {
                Some(records) => asked.done(&records, &context.counters),
                None => asked.problem(&Problem::Superseded { retry_after }),
            },
            (Confirmed::Unconfirmed, OnUnconfirmed::Retryable) => {
                asked.problem(&Problem::Unconfirmed { retry_after })
            }
            (Confirmed::Applied, _) | (Confirmed::Unconfirmed, OnUnconfirmed::AnswerSuccess) => {
                match (self.others, partly) {
                    (Some(remaining), _) => asked.problem(&busy(asked.terms, remaining)),
                    (None, true) => asked.problem(&busy(asked.terms, retry_after)),
                    (None, false) => response,
                }
            }
        }
    }
}

/// The records of messages that other runs took over, if those are all done.
async fn superseded<S: Store, C: Channel>(
    context: &Context<S, C>,
    keys: &[Key],
) -> Option<Vec<Arc<Record>>> {
    let sights = context.within(context.store.look(keys)).await.ok()?;
    let record = |sight| match sight {
        Sight::Done(record) => Some(record),
        Sight::Absent | Sight::Running { .. } => None,
    };
    sights.into_iter().map(record).collect()
}

impl Ending {
    pub(crate) fn holds(&self) -> Vec<Hold> {
        self.leases.iter().map(Lease::hold).collect()
    }

    pub(crate) fn keep(&self) -> Keep {
        self.keep
    }

    /// Whether the handler gave single messages back.
    fn releases_some(&self) -> bool {
        (0..self.leases.len())
            .filter_map(|at| self.claimed.said(at))
            .any(|said| obey(said, self.keep) == Outcome::Release)
    }

    /// Ends the run, as the handler said for single messages and as `ended` says for the rest.
    ///
    /// If the store does not confirm it, that is tried again in the background.
    pub(crate) async fn settle<S: Store, C: Channel>(
        self,
        context: &Arc<Context<S, C>>,
        ended: Ended,
    ) -> Confirmed {
        let record = ended
            .record
            .unwrap_or_else(|| Arc::new(ack_record(&self.ack)));
        let settlements = self.leases.into_iter().enumerate().map(|(at, lease)| {
            let said = self.claimed.said(at).map(|said| obey(said, self.keep));
            match said.unwrap_or(ended.outcome) {
                Outcome::Record(keep) => lease.record(Arc::clone(&record), keep),
                Outcome::Release => lease.release(),
            }
        });
        settle_or_go_on(context, settlements.collect(), Some(self.mine)).await
    }
}

/// Gives leases back that no run was begun for.
pub(crate) async fn release<S: Store, C: Channel>(context: &Context<S, C>, leases: Vec<Lease>) {
    if leases.is_empty() {
        return;
    }
    let settlements: Vec<_> = leases.into_iter().map(Lease::release).collect();
    // What is not given back lapses.
    if let Ok(settled) = context.within(context.store.settle(&settlements)).await {
        count(context, &settlements, &settled);
    }
}

async fn settle_or_go_on<S: Store, C: Channel>(
    context: &Arc<Context<S, C>>,
    settlements: Vec<Settlement>,
    mine: Option<Mine>,
) -> Confirmed {
    for _ in 0..SETTLE_TRIES {
        match context.within(context.store.settle(&settlements)).await {
            Ok(settled) => return count(context, &settlements, &settled),
            Err(error) if error.is_retryable() => {}
            Err(_) => break,
        }
    }
    context.counters.unconfirmed.one();
    let going_on = Arc::clone(context);
    context.detached.spawn(async move {
        settle_in_the_background(&going_on, &settlements).await;
        drop(mine);
    });
    Confirmed::Unconfirmed
}

/// Tries again under renewed leases, so that no repeat runs what has run.
async fn settle_in_the_background<S: Store, C: Channel>(
    context: &Context<S, C>,
    settlements: &[Settlement],
) {
    let lease = context.options.lease;
    let holds: Vec<_> = settlements.iter().map(|s| s.hold.clone()).collect();
    let began = Instant::now();
    let mut tries = 0;
    while began.elapsed() < give_up_settling_after(lease) {
        sleep(settle_again_after(tries, rand::random())).await;
        tries += 1;
        if let Ok(settled) = context.within(context.store.settle(settlements)).await {
            count(context, settlements, &settled);
            return;
        }
        // Its failure is counted; the settlement is what matters.
        context
            .within(context.store.renew(&holds, lease))
            .await
            .ok();
    }
    tracing::error!("the end of a run could not be recorded; a repeat will run again");
}

fn count<S, C>(
    context: &Context<S, C>,
    settlements: &[Settlement],
    settled: &[Settled],
) -> Confirmed {
    let mut superseded = Vec::new();
    for (settlement, settled) in settlements.iter().zip(settled) {
        match (&settlement.end, settled) {
            (End::Record { .. }, Settled::Applied) => context.counters.recorded.one(),
            (End::Release, Settled::Applied) => context.counters.released.one(),
            (End::Record { .. }, Settled::Superseded) => {
                context.counters.superseded.one();
                superseded.push(settlement.hold.key.clone());
            }
            (End::Release, Settled::Superseded) => context.counters.superseded.one(),
        }
    }
    match superseded.is_empty() {
        true => Confirmed::Applied,
        false => Confirmed::Superseded(superseded),
    }
}
