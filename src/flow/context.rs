//! What all requests of one layer share, and what is known about one of them.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Once};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, EXPECT};
use http::request::Parts;
use http::{HeaderValue, Method, Response};
use http_body::Body;
use tokio::time::timeout;

use crate::body::response::ResponseBody;
use crate::channel::contract::{Busy, Channel, Concern, Refusal, Reply, Terms};
use crate::coding::Accepted;
use crate::counts::{Counters, Told};
use crate::detach::Detached;
use crate::error::Error;
use crate::flow::granted::Open;
use crate::outcome::Ends;
use crate::pace::retry_after_running;
use crate::policy::{Effect, Options, Protocol};
use crate::problem::Problem;
use crate::record::{Payload, Record};
use crate::reply;
use crate::store::contract::Store;
use crate::store::watched::Watched;
use crate::underway::Underway;
use crate::watch::span::say_channel;

/// What all requests of one layer share.
#[derive(Debug)]
pub(crate) struct Context<S, C> {
    pub(crate) store: Watched<S>,
    pub(crate) channel: Arc<C>,
    pub(crate) options: Options,
    pub(crate) counters: Arc<Counters>,
    pub(crate) underway: Arc<Underway>,
    pub(crate) detached: Arc<Detached>,
    pub(crate) said: Said,
}

/// What is said once for all requests.
#[derive(Debug)]
pub(crate) struct Said {
    /// What the options make go wrong.
    pub(crate) traps: Once,
    /// That the layer is mounted within another.
    pub(crate) nested: Once,
}

impl Said {
    /// Nothing yet.
    pub(crate) fn nothing() -> Self {
        Self {
            traps: Once::new(),
            nested: Once::new(),
        }
    }
}

/// What is known about a request from its head.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) protocol: Protocol,
    pub(crate) terms: &'a Terms,
    pub(crate) ends: Ends,
    accepted: Accepted,
}

impl<S: Clone, C> Clone for Context<S, C> {
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            channel: Arc::clone(&self.channel),
            options: self.options.clone(),
            counters: Arc::clone(&self.counters),
            underway: Arc::clone(&self.underway),
            detached: Arc::clone(&self.detached),
            said: Said::nothing(),
        }
    }
}

impl<S: Store, C: Channel> Context<S, C> {
    /// Whether a request concerns the channel, judged by its head. One without a key is counted.
    pub(crate) fn concern(&self, head: &Parts) -> Result<Concern, Refusal> {
        let concern = match head.method {
            // The two sides of a tunnel have no request and no answer that would end.
            Method::CONNECT => Ok(Concern::Pass),
            _ => self.channel.concern(head),
        };
        if concern == Ok(Concern::NoKey) {
            let terms = self.channel.terms(head);
            self.counters.tell(&terms.channel, Told::WithoutKey);
        }
        concern
    }

    /// The answer to a request whose head alone shows that it is wrong.
    pub(crate) fn refuse<B, R>(
        &self,
        head: &Parts,
        body: B,
        refusal: &Refusal,
    ) -> Response<ResponseBody<R>>
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        let asked = self.asked(head);
        // Who waits to be told to go on is told not to.
        if !head.headers.contains_key(EXPECT) {
            self.detached.drain_body(Box::pin(body));
        }
        self.refused(&asked, &Problem::refused(refusal))
    }

    /// Whether the layer only looks.
    pub(crate) fn observes(&self) -> bool {
        self.options.effect == Effect::Observes
    }

    /// Counts a request whose head alone would have it refused.
    pub(crate) fn would_refuse(&self, head: &Parts) {
        let terms = self.channel.terms(head);
        self.counters.tell(&terms.channel, Told::Refused);
    }

    /// The answer to a request that is refused before anything is claimed.
    pub(crate) fn refused<R>(
        &self,
        asked: &Asked<'_>,
        problem: &Problem,
    ) -> Response<ResponseBody<R>> {
        self.counters.tell(&asked.terms.channel, Told::Refused);
        asked.problem(problem)
    }

    pub(crate) fn asked(&self, head: &Parts) -> Asked<'_> {
        let terms = self.channel.terms(head);
        let protocol = protocol(head);
        say_channel(&terms.channel);
        Asked {
            protocol,
            terms,
            ends: Ends {
                keep: self.options.keep(terms),
                on_unknown: self
                    .options
                    .on_unknown
                    .unwrap_or_else(|| self.channel.on_unknown(head)),
            },
            accepted: Accepted::by(&head.headers, protocol),
        }
    }

    /// A store call within its time limit. A failure is counted, and traced without keys.
    pub(crate) async fn within<T>(
        &self,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let mut call = pin!(call);
        // A store in memory answers at once: no timer is needed then.
        let answer = match poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await {
            Poll::Ready(answer) => answer,
            Poll::Pending => timeout(self.options.store_limit, call)
                .await
                .unwrap_or_else(|_| Err(Error::overdue("the store did not answer in time"))),
        };
        if let Err(error) = &answer {
            self.counters.store_failures.one();
            tracing::warn!(error = %error, cause = ?std::error::Error::source(error), "store call failed");
        }
        answer
    }
}

impl Asked<'_> {
    /// A problem, in the caller's protocol.
    pub(crate) fn problem<R>(&self, problem: &Problem) -> Response<ResponseBody<R>> {
        reply::problem(self.protocol, problem)
    }

    /// The answer while a message of the request is not done.
    pub(crate) fn open<R>(&self, open: Open, counters: &Counters) -> Response<ResponseBody<R>> {
        match open {
            Open::Running(remaining) => self.busy(remaining),
            Open::Unknown(remaining) => {
                counters.tell(&self.terms.channel, Told::Unknown);
                // It may be settled before the time is over.
                self.problem(&Problem::outcome_unknown(retry_after_running(remaining)))
            }
        }
    }

    /// The answer while a message of the request runs elsewhere.
    pub(crate) fn busy<R>(&self, remaining: Duration) -> Response<ResponseBody<R>> {
        let retry_after = retry_after_running(remaining);
        self.problem(&match self.terms.busy {
            Busy::Conflict => Problem::still_running(retry_after),
            Busy::Unavailable => Problem::not_yet_done(retry_after),
        })
    }

    /// The answer to a request all of whose messages are done.
    ///
    /// One record that all of them share is replayed. Where there is none, a sender that reads
    /// only the status gets its ack, and a client is told that the response was not kept.
    pub(crate) fn done<R>(
        &self,
        records: &[Arc<Record>],
        counters: &Counters,
    ) -> Response<ResponseBody<R>> {
        let channel = &self.terms.channel;
        let (first, others) = match records.split_first() {
            Some((first, others)) => (Some(first), others),
            None => (None, records),
        };
        let shared = first.filter(|first| others.iter().all(|other| other == *first));
        let mut problem = Problem::response_not_kept();
        if let Some(record) = shared
            && let Payload::Whole(whole) = record.payload()
        {
            if self.accepted.admits(record.headers(), self.protocol) {
                counters.tell(channel, Told::Replayed);
                return reply::replay(record, whole);
            }
            problem = Problem::response_not_acceptable();
        }
        match self.terms.reply {
            Reply::Ack => {
                counters.tell(channel, Told::Acked);
                reply::repeated_ack(&self.terms.ack)
            }
            Reply::Record => {
                counters.tell(channel, Told::NotKept);
                self.problem(&problem)
            }
        }
    }
}

fn protocol(head: &Parts) -> Protocol {
    let content_type = head.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    match content_type.and_then(|value| value.strip_prefix(b"application/grpc")) {
        Some([] | [b'+' | b';' | b' ', ..]) => Protocol::Grpc,
        Some(rest) if rest.starts_with(b"-web") => Protocol::GrpcWeb,
        Some(_) | None => Protocol::Http,
    }
}
