//! The answer of a run: record first, then answer.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http::response::Parts;
use http_body::Body;

use crate::body::response::ResponseBody;
use crate::channel::contract::Channel;
use crate::claimed::Claimed;
use crate::error::BoxError;
use crate::flow::context::{Asked, Context};
use crate::flow::ending::{Confirmed, Ended, Ending};
use crate::flow::granted::Granted;
use crate::flow::recording::{too_large_record, whole_record};
use crate::flow::run::{Collected, Produced};
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
                return self.asked.problem(&Problem::response_broken());
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
        let partly = ending.claimed.gives_some_back();
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
        partly: bool,
    ) -> Response<ResponseBody<R>> {
        let (context, asked) = (self.context, self.asked);
        let retry_after = RETRY_SOON;
        // What is left to do, whatever became of the messages of this run.
        let open = self.others.or_else(|| partly.then_some(retry_after));
        match (confirmed, context.options.on_unconfirmed) {
            (Confirmed::Superseded(keys), _) => match (superseded(context, &keys).await, open) {
                (Some(_), Some(remaining)) => asked.busy(remaining),
                (Some(records), None) => asked.done(&records, &context.counters),
                (None, _) => asked.problem(&Problem::superseded(retry_after)),
            },
            (Confirmed::Unconfirmed, OnUnconfirmed::Retryable) => {
                asked.problem(&Problem::unconfirmed(retry_after))
            }
            (Confirmed::Applied, _) | (Confirmed::Unconfirmed, OnUnconfirmed::AnswerSuccess) => {
                match open {
                    Some(remaining) => asked.busy(remaining),
                    None => response,
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
