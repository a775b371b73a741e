//! The claim: all keys of a request in one store call, and the wait for runs of others.

use std::sync::Arc;
use std::time::Duration;

use http::Response;
use http::request::Parts;
#[cfg(not(any(test, feature = "testing")))]
use rand::random;
use tokio::time::{Instant, sleep, timeout_at};

use crate::body::response::ResponseBody;
#[cfg(any(test, feature = "testing"))]
use crate::chance::random;
use crate::channel::contract::{Channel, Terms};
use crate::channel::path::path_of;
use crate::counts::Told;
use crate::delivery::Delivery;
use crate::detach::Attendance;
use crate::error::Error;
use crate::fingerprint::{Fingerprint, Part};
use crate::flow::context::{Asked, Context};
use crate::flow::granted::{Granted, Open};
use crate::flow::settling::release;
use crate::key::Key;
use crate::pace::{RETRY_SOON, look_again_after, usable};
use crate::policy::{OnStoreFailure, Step, Tally, step};
use crate::problem::Problem;
use crate::record::Record;
use crate::store::contract::{Claim, Nonce, Sight, Store, Verdict, Wanted};
use crate::store::lease::Lease;
use crate::watch::emit::{Stopwatch, age};
use crate::watch::metric::{REPEAT_AGE_SECONDS, WAIT_SECONDS};
use crate::watch::span::say_attempt;

/// What became of a request's claim.
pub(crate) enum Decided<R> {
    /// Some messages are this request's to run.
    Run(Granted),
    /// None is; this is the answer.
    Answer(Response<ResponseBody<R>>),
    /// The store failed, and the layer was told to run the handler all the same.
    Unprotected,
}

/// The verdicts on one request, sorted.
#[derive(Default)]
struct Sorted {
    leases: Vec<(usize, Lease)>,
    done: Vec<Arc<Record>>,
    busy: Option<(usize, Duration)>,
    unknown: Option<Duration>,
    other: Option<Part>,
}

/// Claims until the messages are this request's, or done, or the wait is over.
///
/// What happens seldom lies in boxes, so that a replay stays small.
///
/// `attendance` says that the request must be seen through while a claim is under way, and not
/// while it only waits; `on_wait` is called each time before it waits.
pub(crate) async fn decide<S: Store, C: Channel, R>(
    (context, asked): (&Context<S, C>, &Asked<'_>),
    (wanted, deliveries): (Vec<Wanted>, &[Delivery]),
    attendance: &Attendance,
    mut on_wait: impl FnMut(),
) -> Decided<R> {
    let lease = context.options.lease;
    let claim = Claim::new(Nonce::random(), lease, wanted).unknown_for(asked.ends.unknown_for());
    let deadline = Instant::now() + context.options.wait(asked.terms);
    let mut place_in_line = None;
    let mut waiting = None;
    loop {
        attendance.stay();
        let sent = Instant::now();
        let Ok(verdicts) = ask(context, &claim).await else {
            return failed(context, asked);
        };
        if place_in_line.is_none() {
            measure_ages(&verdicts, deliveries);
        }
        let sorted = sort(verdicts, &claim);
        match step(sorted.tally()) {
            Step::Refuse => return Box::pin(refuse(context, asked, sorted)).await,
            Step::Replay => {
                return Decided::Answer(asked.done(&sorted.done, &context.counters));
            }
            Step::Run if sent.elapsed() < usable(lease) => {
                return Decided::Run(granted(context, sorted));
            }
            // The answer took as long as the lease: another may believe in it by now.
            Step::Run => {
                Box::pin(release(context, sorted.into_leases())).await;
                return failed(context, asked);
            }
            Step::TellUnknown => {
                let open = Open::Unknown(sorted.unknown.unwrap_or_default());
                return Decided::Answer(asked.open(open, &context.counters));
            }
            Step::Wait => attendance.leave(),
        }
        if place_in_line.is_none() {
            place_in_line = context.underway.wait(context.options.max_waiting);
            if place_in_line.is_some() {
                context.counters.waited.one();
                waiting.get_or_insert(Waiting(&asked.terms.channel, Stopwatch::start()));
            }
        }
        on_wait();
        let (place, remaining) = sorted.busy.unwrap_or_default();
        let ended = match (claim.wanted.get(place), &place_in_line) {
            (Some(wanted), Some(_)) => Box::pin(wait(context, &wanted.key, deadline)).await,
            _ => false,
        };
        if !ended {
            context.counters.tell(&asked.terms.channel, Told::Busy);
            return Decided::Answer(asked.busy(remaining));
        }
    }
}

impl<S: Store, C: Channel> Context<S, C> {
    /// What the request asks the store for.
    pub(crate) fn wanted(
        &self,
        terms: &Terms,
        (head, body): (&Parts, &[u8]),
        deliveries: &[Delivery],
    ) -> Vec<Wanted> {
        let fingerprint = self
            .options
            .compare(terms)
            .map(|form| Fingerprint::of(head, path_of(head), body, form));
        let wanted = |delivery: &Delivery| Wanted {
            key: delivery.key().clone(),
            fingerprint,
            conversation: delivery.in_conversation().cloned(),
        };
        deliveries.iter().map(wanted).collect()
    }
}

/// Asks twice under one nonce, so that a claim that was applied and never answered is found.
async fn ask<S: Store, C: Channel>(
    context: &Context<S, C>,
    claim: &Claim,
) -> Result<Vec<Verdict>, Error> {
    match context.within(context.store.claim(claim)).await {
        Err(error) if error.is_retryable() => context.within(context.store.claim(claim)).await,
        answer => answer,
    }
}

/// How late repeats come, as far as their senders say when they were sent.
fn measure_ages(verdicts: &[Verdict], deliveries: &[Delivery]) {
    for (verdict, delivery) in verdicts.iter().zip(deliveries) {
        if let Verdict::Replay(_) | Verdict::Running { .. } | Verdict::Unknown { .. } = verdict {
            let channel = delivery.key().channel();
            age(REPEAT_AGE_SECONDS, [channel], delivery.when_sent());
        }
    }
}

/// A wait, measured until it is over or given up.
struct Waiting<'a>(&'a str, Stopwatch);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.1.stop(WAIT_SECONDS, [self.0]);
    }
}

fn sort(verdicts: Vec<Verdict>, claim: &Claim) -> Sorted {
    let mut sorted = Sorted::default();
    for (place, (verdict, wanted)) in verdicts.into_iter().zip(&claim.wanted).enumerate() {
        match verdict {
            Verdict::Run(lease) => sorted.leases.push((place, lease)),
            Verdict::Replay(record) => sorted.done.push(record),
            Verdict::Running { remaining } => sorted.busy = Some((place, remaining)),
            Verdict::Unknown { remaining } => sorted.unknown = Some(remaining).max(sorted.unknown),
            Verdict::Other { first } => {
                let part = wanted
                    .fingerprint
                    .and_then(|mine| mine.differs_from(&first));
                sorted.other = Some(part.unwrap_or(Part::Body));
            }
        }
    }
    sorted
}

impl Sorted {
    fn tally(&self) -> Tally {
        Tally {
            run: self.leases.len(),
            running: usize::from(self.busy.is_some()),
            unknown: usize::from(self.unknown.is_some()),
            other: usize::from(self.other.is_some()),
        }
    }

    fn into_leases(self) -> Vec<Lease> {
        self.leases.into_iter().map(|(_, lease)| lease).collect()
    }
}

fn granted<S, C>(context: &Context<S, C>, sorted: Sorted) -> Granted {
    say_attempt(sorted.leases.iter().map(|(_, lease)| lease.attempt()).max());
    let keys = sorted.leases.iter().map(|(_, lease)| lease.key().clone());
    let running = sorted.busy.map(|(_, remaining)| Open::Running(remaining));
    Granted {
        mine: context.underway.begin(keys.collect()),
        leases: sorted.leases,
        open: sorted.unknown.map(Open::Unknown).or(running),
    }
}

async fn refuse<S: Store, C: Channel, R>(
    context: &Context<S, C>,
    asked: &Asked<'_>,
    sorted: Sorted,
) -> Decided<R> {
    context
        .counters
        .tell(&asked.terms.channel, Told::Mismatched);
    let part = sorted.other.unwrap_or(Part::Body);
    release(context, sorted.into_leases()).await;
    Decided::Answer(asked.problem(&Problem::key_reused(part)))
}

fn failed<S: Store, C: Channel, R>(context: &Context<S, C>, asked: &Asked<'_>) -> Decided<R> {
    let channel = &asked.terms.channel;
    match context.options.on_store_failure {
        OnStoreFailure::Refuse => {
            context.counters.tell(channel, Told::Unavailable);
            Decided::Answer(asked.problem(&Problem::store_unavailable(RETRY_SOON)))
        }
        OnStoreFailure::RunUnprotected => {
            context.counters.tell(channel, Told::Unprotected);
            tracing::warn!("a request runs without protection, since the store failed");
            Decided::Unprotected
        }
    }
}

/// Waits until the run of `key` seems to have ended. `false` if `deadline` comes first.
///
/// A run of this process says when it ends; for another's the store is looked at, less and less
/// often. Either way the next claim decides.
async fn wait<S: Store, C: Channel>(context: &Context<S, C>, key: &Key, deadline: Instant) -> bool {
    let mut looks = 0;
    loop {
        if let Some(end) = context.underway.end_of(key) {
            return timeout_at(deadline, end.cancelled()).await.is_ok();
        }
        let next = Instant::now() + look_again_after(looks, random());
        if next > deadline {
            return false;
        }
        sleep(next - Instant::now()).await;
        looks += 1;
        if may_have_ended(context, key).await {
            return true;
        }
    }
}

async fn may_have_ended<S: Store, C: Channel>(context: &Context<S, C>, key: &Key) -> bool {
    let sights = context
        .within(context.store.look(std::slice::from_ref(key)))
        .await;
    match sights.as_deref() {
        Ok([Sight::Running { remaining }]) => remaining.is_zero(),
        Ok([Sight::Absent | Sight::Done(_)]) => true,
        // What cannot be seen is looked at again, until the deadline.
        Ok(_) | Err(_) => false,
    }
}
