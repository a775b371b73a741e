//! One turn: the messages of a line, one after the other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
#[cfg(not(any(test, feature = "testing")))]
use rand::random;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tower_service::Service;
use tracing::Instrument;

use crate::body::request::RequestBody;
#[cfg(any(test, feature = "testing"))]
use crate::chance::random;
use crate::channel::contract::Channel;
use crate::claimed::Claimed;
use crate::error::BoxError;
use crate::flow::settling::afterwards;
use crate::inbox::attempt::attempt;
use crate::inbox::commit::{end_in_transaction, is_done};
use crate::inbox::decide::{ended, spent};
use crate::inbox::held::Holding;
use crate::inbox::raw::channel_of;
use crate::inbox::shared::Shared;
use crate::pace::settle_again_after;
use crate::store::contract::Store;
use crate::store::queue::contract::Queue;
use crate::store::queue::turn::{Behind, Ended, Onward, Report, Then, Turn, Waiting};
use crate::watch::emit::count as measured;
use crate::watch::metric::INBOX_ATTEMPTS;
use crate::watch::span::span;

/// When a worker's turns end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stops {
    /// After the message that is being handled.
    pub(crate) soon: CancellationToken,
    /// At once.
    pub(crate) now: CancellationToken,
}

/// Handles the messages of a turn until the line is empty, the turn has lasted long enough, or
/// it ends otherwise.
///
/// The next message begins when the store has confirmed the end of the one before.
pub(crate) async fn handle<Q, C, Svc, B, R>(
    shared: Arc<Shared<Q, C>>,
    service: Svc,
    (turn, holding): (Turn, Holding),
    stops: Stops,
) where
    Q: Queue,
    C: Channel,
    Svc: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send,
    Svc::Future: Send,
    Svc::Error: Into<BoxError> + Send,
    B: Send,
    R: Body<Data = Bytes> + Send,
    R::Error: Into<BoxError>,
{
    let began = Instant::now();
    let mut handled = 0;
    let mut messages = VecDeque::from(turn.messages);
    while let Some(message) = messages.pop_front() {
        if holding.is_lost() {
            shared.counters.lost.one();
            return;
        }
        if stops.soon.is_cancelled() {
            break;
        }
        let span = span();
        let run = run(&shared, service.clone(), &holding, &message).instrument(span.clone());
        let (ended, claimed) = tokio::select! {
            ended = run => ended,
            () = stops.now.cancelled() => (cut(&message), None),
            () = holding.lost() => {
                shared.counters.lost.one();
                return;
            }
        };
        handled += 1;
        let is_long = handled >= MOST_MESSAGES || began.elapsed() >= MOST_TIME;
        let then = if stops.soon.is_cancelled() || is_long {
            Then::GiveBack
        } else if messages.is_empty() {
            Then::Read(AT_ONCE)
        } else {
            Then::GoOn
        };
        let report = Report::new(holding.hold, message.place, ended, then);
        let finish = finish((&shared, &holding, &stops), claimed, report, &message);
        match finish.instrument(span).await {
            Some(Onward::Next(more)) => messages.extend(more),
            Some(Onward::Ended) => {
                if then == Then::GiveBack {
                    shared.room.look.notify_one();
                }
                return;
            }
            Some(Onward::Lost) => {
                shared.counters.lost.one();
                return;
            }
            None => return,
        }
    }
    shared.counters.given_back.one();
    tell(&shared, &holding, &stops, Report::give_back(holding.hold)).await;
}

/// Ends a message: in the transaction of its handler, or by a report.
async fn finish<Q: Queue, C: Channel>(
    (shared, holding, stops): (&Shared<Q, C>, &Holding, &Stops),
    claimed: Option<Claimed>,
    report: Report,
    message: &Waiting,
) -> Option<Onward> {
    let (report, told) = match &claimed {
        Some(claimed) => end_in_transaction(shared, claimed, report, message.attempt).await,
        None => (report, None),
    };
    if let Some((_, ended)) = &report.ended {
        count(shared, message, ended);
    }
    let is_done = is_done(&report);
    let onward = match told {
        Some(onward) => Some(onward),
        None => tell(shared, holding, stops, report).await,
    };
    if let (true, Some(claimed), Some(Onward::Next(_) | Onward::Ended)) =
        (is_done, claimed, &onward)
    {
        afterwards(&shared.context, &claimed);
    }
    onward
}

/// How a message ends: handled now, or dead since all its attempts were spent before.
async fn run<Q, C, Svc, B, R>(
    shared: &Shared<Q, C>,
    service: Svc,
    holding: &Holding,
    message: &Waiting,
) -> (Ended, Option<Claimed>)
where
    Q: Queue,
    C: Channel,
    Svc: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send,
    Svc::Future: Send,
    Svc::Error: Into<BoxError> + Send,
    B: Send,
    R: Body<Data = Bytes> + Send,
    R::Error: Into<BoxError>,
{
    let plan = &shared.plan;
    if let Some(dead) = spent(plan, message.attempt, message.fault.as_deref()) {
        return (dead, None);
    }
    let keys = shared.context.options.keys;
    let loan = Store::loan(&shared.context.store, holding.hold.token);
    let borrows = (holding.hold, loan);
    let (came, claimed) = attempt((plan, keys), service, borrows, message).await;
    (ended(plan, message.attempt, came, random()), claimed)
}

/// The end of a message whose handler was dropped: it is due again at once, behind nobody.
fn cut(message: &Waiting) -> Ended {
    Ended::Later {
        after: Duration::ZERO,
        attempt: message.attempt,
        fault: "was cut at the end of its worker".to_owned(),
        behind: Behind::Wait,
    }
}

fn count<Q: Queue, C: Channel>(shared: &Shared<Q, C>, message: &Waiting, ended: &Ended) {
    let (counter, end) = match ended {
        Ended::Done | Ended::Kept => (&shared.counters.handled, "handled"),
        Ended::Later { .. } => (&shared.counters.failed, "failed"),
        Ended::Dead { .. } => (&shared.counters.died, "dead"),
    };
    counter.one();
    measured(INBOX_ATTEMPTS, [channel_of(&message.raw), end], 1);
    say_end(message.attempt, ended);
}

/// The fault stays in the store: it may quote what a customer wrote.
#[expect(
    clippy::cognitive_complexity,
    reason = "three events, as macros write them"
)]
fn say_end(attempt: u32, ended: &Ended) {
    match ended {
        Ended::Done | Ended::Kept => tracing::debug!(attempt, "a message was handled"),
        Ended::Later { after, .. } => tracing::warn!(attempt, ?after, "an attempt failed"),
        Ended::Dead { .. } => tracing::error!(attempt, "a message is dead"),
    }
}

/// Reports until the store has heard it, or somebody else has the turn: a message that was handled
/// while the store was away for longer than a lease is not handled again if nobody took it over.
/// After the worker's end it is tried once; what is not heard lapses.
async fn tell<Q: Queue, C: Channel>(
    shared: &Shared<Q, C>,
    holding: &Holding,
    stops: &Stops,
    report: Report,
) -> Option<Onward> {
    let reports = [report];
    for n in 0.. {
        if let Ok(onward) = shared.within(shared.context.store.report(&reports)).await {
            return onward.into_iter().next();
        }
        if stops.now.is_cancelled() || holding.taken.is_cancelled() {
            return None;
        }
        tokio::select! {
            () = sleep(settle_again_after(n, random())) => {}
            () = holding.taken.cancelled() => {}
            () = stops.now.cancelled() => {}
        }
    }
    None
}

/// How many messages are read at once.
pub(crate) const AT_ONCE: usize = 16;

/// After so many messages, or so long, a turn is given back, so that a long line does not keep
/// others from theirs.
const MOST_MESSAGES: usize = 64;
const MOST_TIME: Duration = Duration::from_secs(1);
