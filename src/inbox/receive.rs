//! The way of one request into the inbox, top to bottom.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body::Body;
use tokio::time::Instant;
use tower_service::Service;

use crate::body::read::Read;
use crate::body::request::RequestBody;
use crate::body::response::ResponseBody;
use crate::channel::contract::Channel;
use crate::counts::Told;
use crate::delivery::Delivery;
use crate::detach::Attendance;
use crate::error::{BoxError, Error};
use crate::flow::reading::{Taken, take};
use crate::flow::run::Inner;
use crate::flow::story::named;
use crate::inbox::decide::keep;
use crate::inbox::raw::RawRequest;
use crate::inbox::room::Given;
use crate::inbox::shared::Shared;
use crate::key::Key;
use crate::pace::{RETRY_SOON, usable};
use crate::problem::Problem;
use crate::record::Keep;
use crate::reply;
use crate::store::queue::arrival::{Accepted, Arrival, Place};
use crate::store::queue::contract::Queue;
use crate::store::queue::turn::{Turn, TurnHold, Waiting};
use crate::watch::emit::age;
use crate::watch::metric::REPEAT_AGE_SECONDS;

/// Answers one request that concerns the channel: read, verify, name, store, acknowledge.
///
/// Safe to drop while `attendance` does not say that the rest must happen; else it goes on in a
/// task of its own, so that a turn that was given is handed on.
pub(crate) async fn receive<Q, C, Svc, B, R>(
    shared: Arc<Shared<Q, C>>,
    service: Svc,
    request: Request<B>,
    attendance: Arc<Attendance>,
) -> Result<Response<ResponseBody<R>>, Svc::Error>
where
    Q: Queue,
    C: Channel,
    Svc: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send,
    Svc::Future: Send,
    Svc::Error: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    let context = &shared.context;
    let (head, body) = request.into_parts();
    let asked = context.asked(&head);

    // Read.
    let read = match take(context, &asked, &head, body).await {
        Taken::Whole(read) => read,
        Taken::Refused(problem) => return Ok(context.refused(&asked, &problem)),
        // Never let pass: the options of an inbox do not allow it.
        Taken::Streaming(_) => return Ok(context.refused(&asked, &Problem::streaming_call())),
    };

    // Verify and name.
    let deliveries = match named(context, &head, &read.data) {
        Ok(deliveries) => deliveries,
        Err(refusal) => return Ok(context.refused(&asked, &Problem::refused(&refusal))),
    };
    if deliveries.is_empty() {
        context
            .counters
            .tell(&asked.terms.channel, Told::WithoutKey);
        return Inner::cold(service).pass(request_of(head, read)).await;
    }

    // Store.
    let keep = keep(&shared.plan, asked.terms);
    let unavailable = || {
        context
            .counters
            .tell(&asked.terms.channel, Told::Unavailable);
        Ok(asked.problem(&Problem::store_unavailable(RETRY_SOON)))
    };
    let Ok(arrivals) = arrivals(&shared, (&head, &read.data), &deliveries, keep) else {
        return unavailable();
    };
    attendance.stay();
    let Ok(repeats) = store(&shared, (&arrivals, &deliveries)).await else {
        return unavailable();
    };
    attendance.leave();

    // Acknowledge.
    let ack = &asked.terms.ack;
    let (told, response) = if repeats == arrivals.len() {
        (Told::Repeated, reply::repeated_ack(ack))
    } else {
        (Told::Stored, reply::ack(ack))
    };
    context.counters.tell(&asked.terms.channel, told);
    Ok(response)
}

fn request_of<B>(head: Parts, read: Read) -> Request<RequestBody<B>> {
    Request::from_parts(head, RequestBody::read(read))
}

/// The messages of a request, each with the request as it would be if it had come alone.
fn arrivals<Q, C: Channel>(
    shared: &Shared<Q, C>,
    (head, body): (&Parts, &Bytes),
    deliveries: &[Delivery],
    keep: Keep,
) -> Result<Vec<Arrival>, Error> {
    let channel = &shared.context.channel;
    let is_verified = channel.is_verifying(head);
    let arrive = |delivery: &Delivery| {
        let others = deliveries.iter().map(Delivery::key);
        let others: Vec<&Key> = others.filter(|key| *key != delivery.key()).collect();
        let alone = match others.as_slice() {
            [] => None,
            others => channel.without(head, body, others),
        };
        let body = alone.as_ref().unwrap_or(body);
        let left_out = &shared.plan.left_out;
        let raw = RawRequest::write(delivery, is_verified, (head, body), left_out)?;
        let arrival = Arrival::new(delivery.key().clone(), keep, raw);
        Ok(match delivery.in_conversation() {
            Some(conversation) => arrival.conversation(conversation.clone()),
            None => arrival,
        })
    };
    deliveries.iter().map(arrive).collect()
}

/// Stores the messages, and hands the turns of the lines that they begin to this process's
/// worker. Gives the number of repeats.
async fn store<Q: Queue, C: Channel>(
    shared: &Shared<Q, C>,
    (arrivals, deliveries): (&[Arrival], &[Delivery]),
) -> Result<usize, Error> {
    let lines: HashSet<_> = arrivals.iter().map(Arrival::line).collect();
    let mut places = shared.room.reserve(lines.len());
    let lease = places.as_ref().map(|_| shared.plan.lease);
    let until = Instant::now() + usable(shared.plan.lease);
    let accepted = shared.within(shared.context.store.accept(arrivals, lease));
    let mut repeats = 0;
    let mut unwanted = Vec::new();
    let named = arrivals.iter().zip(deliveries);
    for ((arrival, delivery), accepted) in named.zip(accepted.await?) {
        match accepted {
            Accepted::Repeat(stage) => {
                repeats += 1;
                let channel = arrival.key.channel();
                age(REPEAT_AGE_SECONDS, [channel], delivery.when_sent());
                shared.counters.repeat(stage).one();
            }
            Accepted::New { place, turn } => {
                shared.counters.accepted.one();
                shared.room.warn_if_never_open();
                let Some(token) = turn else {
                    shared.room.look.notify_one();
                    continue;
                };
                // As many places were reserved as lines can begin.
                if let Some(mine) = places.as_mut().and_then(|places| places.split(1)) {
                    let hold = TurnHold::new(arrival.line(), token);
                    let turn = fresh(hold, place, arrival);
                    let place = mine;
                    let given = Given { turn, until, place };
                    unwanted.extend(shared.room.give(given).err());
                }
            }
        }
    }
    // Where the worker ended meanwhile, others go on at once.
    shared.give_back(&unwanted).await;
    Ok(repeats)
}

/// The turn of a line that has just begun, its message as this process has it.
fn fresh(hold: TurnHold, place: Place, arrival: &Arrival) -> Turn {
    let message = Waiting::new(place, received_now(), arrival.raw.clone());
    Turn::new(hold, Duration::ZERO, vec![message])
}

#[expect(
    clippy::disallowed_methods,
    reason = "for the handler to read; no decision rests on it"
)]
fn received_now() -> SystemTime {
    SystemTime::now()
}
