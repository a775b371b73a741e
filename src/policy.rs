//! Every decision, as pure functions over plain options.

use std::time::Duration;

use http::StatusCode;
use http::header::HeaderName;

use crate::channel::contract::{OnUnknown, Terms};
use crate::fingerprint::BodyForm;
use crate::record::Keep;
use crate::watch::shown::KeysInLogs;

/// The layer's options, as plain values. `None` leaves the choice to the channel's terms.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) lease: Duration,
    pub(crate) wait: Option<Duration>,
    pub(crate) keep: Option<Keep>,
    pub(crate) compare: Comparison,
    pub(crate) max_request: usize,
    pub(crate) read_limit: Duration,
    pub(crate) on_streaming_call: OnStreamingCall,
    pub(crate) max_response: usize,
    pub(crate) store_limit: Duration,
    pub(crate) on_store_failure: OnStoreFailure,
    pub(crate) on_unconfirmed: OnUnconfirmed,
    pub(crate) on_unknown: Option<OnUnknown>,
    pub(crate) others: Others,
    pub(crate) also_recorded: Vec<StatusCode>,
    pub(crate) not_replayed: Vec<HeaderName>,
    pub(crate) max_detached: usize,
    pub(crate) max_waiting: usize,
    pub(crate) keys: KeysInLogs,
    pub(crate) effect: Effect,
}

/// Whether the layer acts on what it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Acts,
    /// It only looks.
    Observes,
}

/// Who says whether a repeat must be the same request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Comparison {
    AsChannel,
    AsLayer(Option<BodyForm>),
}

/// What a request with a key gets when the store cannot answer its claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnStoreFailure {
    /// 503 with `Retry-After`; nothing runs.
    #[default]
    Refuse,
    /// The handler runs as if there were no layer: a repeat runs it again. Counted.
    RunUnprotected,
}

/// What a gRPC call that streams its requests gets if it carries a key.
///
/// Which calls those are is not in their heads. A body that ends after exactly one message can be
/// protected, whatever the service definition says of its call; one that goes on, or ends without
/// a message, is a streaming call. At most [`max_request`] bytes are read to find out.
///
/// A server that knows its methods needs no guess: let the channel speak for those that can be
/// protected, with [`ByPath`](crate::channel::ByPath), and the rest pass untouched.
///
/// [`max_request`]: crate::IdempotencyLayer::max_request
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnStreamingCall {
    /// `INVALID_ARGUMENT` at the first byte of a second message; nothing runs. A call that does
    /// neither end nor go on after its message gets `DEADLINE_EXCEEDED` after the [`read_limit`].
    ///
    /// [`read_limit`]: crate::IdempotencyLayer::read_limit
    #[default]
    Refuse,
    /// The handler runs as if there were no layer: a repeat runs it again. Counted.
    ///
    /// A call that is silent for a second before its first message, or between its message and
    /// its end, is then taken for a streaming one, so that the two sides of a conversation
    /// never wait for each other. The channel verifies only what was read by then.
    PassUnprotected,
}

/// What a caller gets when its run succeeded and the store does not confirm the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnUnconfirmed {
    /// 503 with `Retry-After`; the record is tried again in the background, and the repeat gets
    /// it.
    #[default]
    Retryable,
    /// The success. Gives up that every later repeat gets the same one, and that a 2xx means
    /// done: if the record is never written, a repeat runs again.
    AnswerSuccess,
}

/// What the handler is given of a batch in which some messages are not its own: they are done
/// already, or another run has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Others {
    /// They are cut out of the body; all other bytes stay as they are.
    #[default]
    CutOut,
    /// The body whole; the handler asks [`Claimed`](crate::Claimed) which ones are its own.
    PassWhole,
}

/// A response extension by which the handler decides whether its answer is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Disposition {
    /// The message is done, whatever the status says.
    Record,
    /// The message is done, and its record is kept this long.
    RecordFor(Duration),
    /// The message is not done: answered, but not handled. The next repeat runs.
    Release,
    /// Nobody knows whether the message is done: a call to another system was cut, say. Where
    /// [unknown outcomes are parked](crate::OnUnknown::Park) nothing runs until somebody knows; in
    /// an inbox the message is dead; elsewhere it is as [`Release`](Self::Release).
    Unknown,
}

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Record(Keep),
    Release,
    /// Nobody knows: the key is parked.
    Unknown,
}

/// Which protocol the caller speaks, and so what a success is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http,
    Grpc,
    /// gRPC for browsers. Its status is a frame of the body, which is not read here.
    GrpcWeb,
}

/// Whether the head of an answer may go out before its body has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    MayGoFirst,
    WaitsForTheEnd,
}

/// What a request does after its keys were claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Another request has one of the keys.
    Refuse,
    /// At least one message is its own.
    Run,
    /// Every message is done.
    Replay,
    /// None is its own, and the outcome of some is unknown: to wait for the rest is of no use.
    TellUnknown,
    /// None is its own, and some are running.
    Wait,
}

/// How many messages of a request got which verdict.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) run: usize,
    pub(crate) running: usize,
    pub(crate) unknown: usize,
    pub(crate) other: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            wait: None,
            keep: None,
            compare: Comparison::AsChannel,
            max_request: 1 << 20,
            read_limit: Duration::from_mins(1),
            on_streaming_call: OnStreamingCall::default(),
            max_response: 1 << 20,
            store_limit: Duration::from_secs(5),
            on_store_failure: OnStoreFailure::default(),
            on_unconfirmed: OnUnconfirmed::default(),
            on_unknown: None,
            others: Others::default(),
            also_recorded: Vec::new(),
            not_replayed: not_replayed(),
            max_detached: 65_536,
            max_waiting: 1024,
            keys: KeysInLogs::default(),
            effect: Effect::Acts,
        }
    }
}

impl Options {
    pub(crate) fn wait(&self, terms: &Terms) -> Duration {
        self.wait.unwrap_or(terms.wait)
    }

    pub(crate) fn keep(&self, terms: &Terms) -> Keep {
        self.keep.unwrap_or(terms.keep)
    }

    pub(crate) fn compare(&self, terms: &Terms) -> Option<BodyForm> {
        match self.compare {
            Comparison::AsChannel => terms.compare,
            Comparison::AsLayer(form) => form,
        }
    }
}

/// A key that holds a message is never kept waiting behind one that does not: what can run runs.
pub(crate) fn step(tally: Tally) -> Step {
    match tally {
        Tally { other: 1.., .. } => Step::Refuse,
        Tally { run: 1.., .. } => Step::Run,
        Tally { unknown: 1.., .. } => Step::TellUnknown,
        Tally { running: 1.., .. } => Step::Wait,
        Tally { .. } => Step::Replay,
    }
}

/// Up to this much of a response of unknown length is looked at before its head goes out.
pub(crate) const EAGER: usize = 64 << 10;

pub(crate) const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// Header fields of one connection: framing and hop-by-hop (RFC 9110, section 7.6.1). Never
/// recorded, whatever list was chosen: a repeat comes over another connection.
pub(crate) const OF_THE_CONNECTION: [HeaderName; 8] = [
    HeaderName::from_static("connection"),
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-authenticate"),
    HeaderName::from_static("proxy-authentication-info"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("te"),
    HeaderName::from_static("transfer-encoding"),
    HeaderName::from_static("upgrade"),
];

/// Header fields that belong to one answer and not to its repeats: the date, cookies, what was
/// said to one caller's credentials, and to one origin by CORS.
pub(crate) fn not_replayed() -> Vec<HeaderName> {
    [
        "date",
        "set-cookie",
        "www-authenticate",
        "authentication-info",
        "access-control-allow-origin",
        "access-control-allow-credentials",
        "access-control-allow-headers",
        "access-control-allow-methods",
        "access-control-allow-private-network",
        "access-control-expose-headers",
        "access-control-max-age",
    ]
    .map(HeaderName::from_static)
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_run_runs_and_never_waits() {
        let step_of = |[run, running, unknown, other]: [usize; 4]| {
            step(Tally {
                run,
                running,
                unknown,
                other,
            })
        };
        assert_eq!(step_of([1, 1, 1, 0]), Step::Run);
        assert_eq!(step_of([0, 1, 0, 0]), Step::Wait);
        assert_eq!(step_of([0, 1, 1, 0]), Step::TellUnknown);
        assert_eq!(step_of([0, 0, 0, 0]), Step::Replay);
        assert_eq!(step_of([1, 1, 1, 1]), Step::Refuse);
    }
}
