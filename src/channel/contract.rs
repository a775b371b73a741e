//! What a channel owes: it reads deliveries out of a request.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Request, StatusCode};

use crate::delivery::Delivery;
use crate::fingerprint::BodyForm;
use crate::key::Key;
use crate::record::Keep;

/// Reads deliveries out of a request: who is speaking, and which messages are these?
///
/// An implementer owes:
/// * **totality**: every method gives an answer for any head and any bytes, and never panics;
/// * **determinism**: the same request gives the same answer, in every process and version;
/// * **stable keys**: no part of a key may change when the sender repeats the message (receive
///   times, signatures, retry counters), and none may be the id of *another* message;
/// * **speed**: the methods run on the request's path and must not block.
///
/// Every method gets the head, so that one channel may speak for several
/// ([`ByPath`](crate::channel::ByPath)).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a channel",
    label = "not a channel",
    note = "`JsonPath`, `FormField`, `XmlPath` and `HeaderId` are channels once `.verified_by(verifier)` or \
            `.unverified()` was said",
    note = "for clients that send `Idempotency-Key` it is `IdempotencyKey::scoped_by(scope)`"
)]
pub trait Channel: Send + Sync + 'static {
    /// The channel's defaults for this request.
    fn terms(&self, head: &Parts) -> &Terms;

    /// The terms of everyone that this channel speaks for, whatever the request. The default asks
    /// for those of a `POST /`, which is right unless they depend on the head.
    ///
    /// What cannot work is refused by them when it is built, and not when a message comes.
    fn all_terms(&self) -> Vec<&Terms> {
        let head = Request::post("/").body(()).map(Request::into_parts);
        head.map(|(head, ())| self.terms(&head))
            .into_iter()
            .collect()
    }

    /// Whether the request can carry a delivery, judged by its head alone.
    ///
    /// Safe methods and handshakes do not. What does not concern the channel reaches the inner
    /// service with its body untouched.
    ///
    /// # Errors
    /// A [`Refusal`] if the head alone shows that the request is wrong; its body is not read.
    fn concern(&self, head: &Parts) -> Result<Concern, Refusal>;

    /// Checks that the sender sent these very bytes.
    ///
    /// Called before anything is read out of the body. The default accepts everything: whoever
    /// can guess an id then suppresses the real message.
    ///
    /// # Errors
    /// A [`Refusal`], usually [`Refusal::unverified`]; nothing is claimed then.
    fn verify(&self, head: &Parts, body: &[u8]) -> Result<(), Refusal> {
        let _ = (head, body);
        Ok(())
    }

    /// Whether [`verify`](Self::verify) checks requests like this one at all. Default: `false`.
    fn is_verifying(&self, head: &Parts) -> bool {
        let _ = head;
        false
    }

    /// The deliveries in the request, in order of appearance, each key once.
    ///
    /// An empty list passes the request to the inner service unprotected: handshakes, events
    /// without an id, a body that the channel cannot read and the handler shall answer.
    ///
    /// # Errors
    /// A [`Refusal`] if the request is wrong and must not run.
    fn deliveries(&self, head: &Parts, body: &[u8]) -> Result<Vec<Delivery>, Refusal>;

    /// What becomes of a message whose run ended without saying whether its work was done.
    /// Default: [`OnUnknown::RunAgain`]. [`Parking`](crate::channel::Parking) says otherwise for
    /// any channel.
    fn on_unknown(&self, head: &Parts) -> OnUnknown {
        let _ = head;
        OnUnknown::RunAgain
    }

    /// The body without the deliveries whose key is in `gone`; every other byte stays as it is.
    ///
    /// `None` if this body cannot be cut; it is then passed on whole. The default never cuts,
    /// which is right where a request carries one delivery.
    fn without(&self, head: &Parts, body: &Bytes, gone: &[&Key]) -> Option<Bytes> {
        let _ = (head, body, gone);
        None
    }
}

/// Whether a request concerns a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Concern {
    /// It does not: a safe method, a handshake, another path.
    Pass,
    /// It would, but carries no key. Passes, and is counted.
    NoKey,
    /// Its deliveries are to be read out of head and body.
    Read,
}

/// A channel's defaults. Options set on the layer override them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Terms {
    /// The channel's name: the first part of its keys, and what counters and traces call it.
    pub channel: Arc<str>,
    /// What a repeat is told while the first run goes on. Default: [`Busy::Unavailable`].
    pub busy: Busy,
    /// How long a repeat waits for the first run before it is told so. Default: 4 s.
    pub wait: Duration,
    /// How long a record is kept. Default: eight days.
    pub keep: Keep,
    /// Whether a repeat must be the same request. Default: `None`, any bytes under the same id
    /// are the same message.
    pub compare: Option<BodyForm>,
    /// What a repeat is answered. Default: [`Reply::Ack`].
    pub reply: Reply,
    /// The answer that tells this sender "received". Default: 200 with an empty body.
    pub ack: Ack,
    /// How long the sender goes on repeating, where that is known. Default: `None`.
    pub horizon: Option<Duration>,
}

/// What a repeat is told while the first run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Busy {
    /// 409 with `Retry-After`: for clients that make their own key.
    Conflict,
    /// 503 with `Retry-After`: for webhook senders, who come back after any failure.
    Unavailable,
}

/// What a repeat of a finished message is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// The body of the answer is the reply (a web chat, TwiML): the record is all there is, so a
    /// repeat whose record was not kept is told so.
    Record,
    /// The sender reads only the status: where no record can be replayed, it gets the channel's
    /// ack.
    Ack,
}

/// What becomes of a message whose run ended without saying whether its work was done.
///
/// That is a run that was cut by a timeout inside the layer (an answer 408 or 504; for gRPC
/// `CANCELLED`, `DEADLINE_EXCEEDED` or no status), by a panic, by the inner service's error or by a
/// response that broke; one whose handler says [`Disposition::Unknown`](crate::Disposition); and
/// one whose lease lapsed, since its process died or lost the store.
///
/// Any other answer says what happened, and is recorded or released as ever: a handler whose own
/// call to another system was cut, and who answers 500 or 502, must say that it does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnUnknown {
    /// The next repeat runs. Right where a handler's work is written in one transaction, or where
    /// the systems that it calls know [a key for each step](crate::Message::step_key).
    #[default]
    RunAgain,
    /// The key is parked: nothing runs again. A repeat is told so, by 409 `outcome-unknown` with
    /// `Retry-After`, until the application [says](crate::IdempotencyLayer::settle_unknown) what
    /// became of the message, its late run ends after all, or `unknown_for` has passed. For
    /// handlers that call systems which do the same thing twice if they are asked twice.
    ///
    /// # What it costs
    /// A parked message waits for somebody. Parked does not mean that anything ran: where a claim
    /// reached the store and its answer did not reach the layer, or the process died between the
    /// claim and the call of the handler, or a run that never began could not be given back, the
    /// key is parked all the same.
    ///
    /// All that share the store must agree: a layer that runs again takes over what another has
    /// parked.
    Park {
        /// For how long, by the store's clock, from when the run ended or its lease lapsed;
        /// `Duration::MAX` is until it is settled. Afterwards the next repeat runs.
        unknown_for: Duration,
    },
}

/// The answer by which a channel's sender knows that a message was received.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ack {
    /// The status; a success.
    pub status: StatusCode,
    /// The `Content-Type`, if the body needs one.
    pub content_type: Option<HeaderValue>,
    /// The body.
    pub body: Bytes,
}

impl Terms {
    /// The defaults of a webhook channel called `channel`; see the fields.
    pub fn webhook(channel: &str) -> Self {
        Self {
            channel: channel.into(),
            busy: Busy::Unavailable,
            wait: Duration::from_secs(4),
            keep: Keep::For(Duration::from_hours(8 * 24)),
            compare: None,
            reply: Reply::Ack,
            ack: Ack::default(),
            horizon: None,
        }
    }

    /// The defaults of a channel whose clients make the key: a repeat waits up to 10 s and is
    /// then told 409, must be the same request, and gets the record, which is kept for a day.
    pub fn client(channel: &str) -> Self {
        Self {
            busy: Busy::Conflict,
            wait: Duration::from_secs(10),
            keep: Keep::For(Duration::from_hours(24)),
            compare: Some(BodyForm::Bytes),
            reply: Reply::Record,
            ..Self::webhook(channel)
        }
    }
}

impl Default for Ack {
    fn default() -> Self {
        Self {
            status: StatusCode::OK,
            content_type: None,
            body: Bytes::new(),
        }
    }
}

/// Why a request is refused before anything is claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    reason: Reason,
    detail: Cow<'static, str>,
}

/// The kind of a [`Refusal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// A key is asked for and there is none. 400.
    MissingKey,
    /// The key is there and cannot be one: two header lines, blank, too long. 400.
    MalformedKey,
    /// The channel's keys are scoped and the request names no scope. 400.
    MissingScope,
    /// The body cannot be read, or says two things at once. 400.
    MalformedBody,
    /// The sender is not who it says it is. 401.
    Unverified,
}

impl Refusal {
    /// A refusal for `reason`; `detail` says what is wrong and where, without secrets.
    pub fn new(reason: Reason, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            reason,
            detail: detail.into(),
        }
    }

    /// The sender could not be verified.
    pub fn unverified(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Reason::Unverified, detail)
    }

    /// The kind of refusal.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// What is wrong, and where.
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for Refusal {}
