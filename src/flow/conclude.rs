//! The answer of a run: record first, then answer.

use std::panic::resume_unwind;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use http::response::Parts;
use http_body::Body;

use crate::body::response::ResponseBody;
use crate::channel::contract::Channel;
use crate::claimed::Claimed;
use crate::error::BoxError;
use crate::flow::context::{Asked, Context};
use crate::flow::ending::{Ended, Ending};
use crate::flow::granted::{Granted, Open};
use crate::flow::recording::{too_large_record, whole_record};
use crate::flow::run::{Collected, Produced};
use crate::flow::settling::{Confirmed, Undone};
use crate::flow::stream;
use crate::key::Key;
use crate::pace::RETRY_SOON;
use crate::policy::{OnUnconfirmed, Outcome};
use crate::problem::Problem;
use crate::record::Record;
use crate::store::contract::{Sight, Store};

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
        others: granted.open,
    };
    let ending = Ending::of(granted, claimed, asked);
    let unknown = Ended::without_record(asked.ends.unknown());
    match produced {
        Produced::Answer {
            parts,
            outcome,
            body,
        } => Ok(answering.answer(ending, parts, outcome, body).await),
        Produced::Failed(error) => {
            ending.settle(context, unknown).await;
            Err(error)
        }
        Produced::Panicked(panic) => {
            ending.settle(context, unknown).await;
            resume_unwind(panic)
        }
    }
}

/// What the answer of a run depends on, beside the run.
struct Answering<'a, S, C> {
    context: &'a Arc<Context<S, C>>,
    asked: &'a Asked<'a>,
    /// A message of the request that was not this run's, if one is not done.
    others: Option<Open>,
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
                let unknown = Ended::without_record(self.asked.ends.unknown());
                ending.settle(self.context, unknown).await;
                return self.asked.problem(&Problem::response_broken());
            }
            (Collected::Untouched(body), outcome) => {
                let outcome = outcome.unwrap_or(Outcome::Release);
                (Ended::without_record(outcome), ResponseBody::passed(body))
            }
            (Collected::Whole(whole), Some(outcome @ (Outcome::Release | Outcome::Unknown))) => {
                (Ended::without_record(outcome), ResponseBody::whole(whole))
            }
            (Collected::Whole(whole), Some(outcome)) => {
                let record = Some(Arc::new(whole_record(options, &parts, &whole)));
                (Ended { outcome, record }, ResponseBody::whole(whole))
            }
            (Collected::TooLarge(first, body), Some(outcome)) => {
                let record = Some(Arc::new(too_large_record(options, &parts)));
                (Ended { outcome, record }, ResponseBody::rest(first, body))
            }
            (Collected::Whole(whole), None) => {
                let unknown = Ended::without_record(self.asked.ends.unknown());
                (unknown, ResponseBody::whole(whole))
            }
            (Collected::Streaming(first, body) | Collected::TooLarge(first, body), _) => {
                let source = stream::Source::new(options, &parts, outcome, (first, body));
                let body = stream::begin(Arc::clone(self.context), ending, source);
                return Response::from_parts(parts, body);
            }
        };
        let is_recorded = matches!(ended.outcome, Outcome::Record(_));
        let partly = left_open(&ending);
        let confirmed = ending.settle(self.context, ended).await;
        let response = Response::from_parts(parts, body);
        if is_recorded {
            self.after(confirmed, response, partly).await
        } else {
            response
        }
    }

    /// The answer to a run whose messages were to be recorded.
    async fn after<R>(
        &self,
        confirmed: Confirmed,
        response: Response<ResponseBody<R>>,
        partly: Option<Open>,
    ) -> Response<ResponseBody<R>> {
        let (context, asked) = (self.context, self.asked);
        let retry_after = RETRY_SOON;
        // What is left to do, whatever became of the messages of this run.
        let open = self.others.or(partly);
        match (confirmed, context.options.on_unconfirmed) {
            (Confirmed::Superseded(keys), _) => match (superseded(context, &keys).await, open) {
                (Some(_), Some(open)) => asked.open(open, &context.counters),
                (Some(records), None) => asked.done(&records, &context.counters),
                (None, _) => asked.problem(&Problem::superseded(retry_after)),
            },
            (Confirmed::RolledBack(Undone::Failed), _) => {
                asked.problem(&Problem::rolled_back(retry_after))
            }
            (Confirmed::RolledBack(Undone::Misused), _) => {
                asked.problem(&Problem::transaction_misused())
            }
            (Confirmed::RolledBack(Undone::Unknown), _)
            | (Confirmed::Unconfirmed, OnUnconfirmed::Retryable) => {
                asked.problem(&Problem::unconfirmed(retry_after))
            }
            (Confirmed::Applied, _) | (Confirmed::Unconfirmed, OnUnconfirmed::AnswerSuccess) => {
                match open {
                    Some(open) => asked.open(open, &context.counters),
                    None => response,
                }
            }
        }
    }
}

/// A message of the run's own that is not done, by the handler's word.
fn left_open(ending: &Ending) -> Option<Open> {
    match ending.ends.unknown_for() {
        Some(time) if ending.claimed.leaves_some_unknown() => Some(Open::Unknown(time)),
        Some(_) | None => {
            let given_back = ending.claimed.gives_some_back();
            given_back.then_some(Open::Running(RETRY_SOON))
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
