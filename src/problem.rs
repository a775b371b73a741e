//! Why a request with a key is not answered by its handler or a record.

use std::borrow::Cow;
use std::time::Duration;

use http::StatusCode;

use crate::channel::contract::{Reason, Refusal};
use crate::fingerprint::Part;

/// A refusal, in the words of both protocols.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) kind: &'static Kind,
    pub(crate) detail: Cow<'static, str>,
    pub(crate) retry_after: Option<Duration>,
}

/// What all problems of one kind share.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) status: StatusCode,
    /// The gRPC code, <https://grpc.io/docs/guides/status-codes/>.
    pub(crate) grpc: u16,
    /// The stable name: programs go by it.
    pub(crate) code: &'static str,
    pub(crate) title: &'static str,
}

impl Problem {
    /// The request is wrong, and nothing was claimed.
    pub(crate) fn refused(refusal: &Refusal) -> Self {
        let kind = match refusal.reason() {
            Reason::MissingKey => &MISSING_KEY,
            Reason::MalformedKey => &MALFORMED_KEY,
            Reason::MissingScope => &MISSING_SCOPE,
            Reason::MalformedBody => &MALFORMED_BODY,
            Reason::Unverified => &UNVERIFIED,
        };
        Self::new(kind, refusal.detail().to_owned())
    }

    /// The body is over this layer's limit, or over that of another layer in front of it.
    pub(crate) fn too_large(limit: Option<usize>) -> Self {
        match limit {
            Some(limit) => Self::new(
                &TOO_LARGE,
                format!("The body is over {limit} bytes; nothing was run."),
            ),
            None => Self::new(
                &TOO_LARGE,
                "The body is over this server's limit; nothing was run.",
            ),
        }
    }

    /// The body does not come to its end.
    pub(crate) fn body_late(limit: Duration) -> Self {
        let seconds = limit.as_secs_f64();
        let detail = format!("The body did not end within {seconds} s; nothing was run.");
        Self::new(&BODY_LATE, detail)
    }

    /// A gRPC call neither ends nor goes on.
    pub(crate) fn call_late(limit: Duration) -> Self {
        let seconds = limit.as_secs_f64();
        let detail = format!(
            "The call's one message did not end within {seconds} s; nothing was run. \
             A call that streams its requests cannot carry a key."
        );
        Self::new(&BODY_LATE, detail)
    }

    /// A gRPC call with more than one message, or none.
    pub(crate) fn streaming_call() -> Self {
        Self::new(
            &STREAMING_CALL,
            "A call that streams its requests cannot be protected; nothing was run. \
             Send it without the key.",
        )
    }

    /// A gRPC-Web call that was not translated.
    pub(crate) fn grpc_web() -> Self {
        Self::new(
            &GRPC_WEB,
            "Nothing was run. The server protects gRPC-Web calls only behind their translation \
             to gRPC.",
        )
    }

    /// The body ended early.
    pub(crate) fn body_cut() -> Self {
        Self::new(
            &BODY_CUT,
            "The body ended early or has another length than declared; nothing was run.",
        )
    }

    /// The first run goes on: for clients that make their own key.
    pub(crate) fn still_running(retry_after: Duration) -> Self {
        Self::new(
            &STILL_RUNNING,
            "Send the same request again later; it will get the first one's answer.",
        )
        .retry(retry_after)
    }

    /// A message is not done yet: for webhook senders.
    pub(crate) fn not_yet_done(retry_after: Duration) -> Self {
        Self::new(
            &NOT_YET_DONE,
            "Deliver it again later; what is done by then is not run again.",
        )
        .retry(retry_after)
    }

    /// A run ended without saying whether its work was done.
    pub(crate) fn outcome_unknown(retry_after: Duration) -> Self {
        Self::new(
            &OUTCOME_UNKNOWN,
            "A run ended and did not say whether its work was done. Nothing is run again until that \
             is known: send the same request again later, and never under a new key.",
        )
        .retry(retry_after)
    }

    /// The key belongs to another request.
    pub(crate) fn key_reused(part: Part) -> Self {
        let detail = format!(
            "The {part} differs from that of the first request with this key. \
             A new message needs a new key."
        );
        Self::new(&KEY_REUSED, detail)
    }

    /// There is no response to replay.
    pub(crate) fn response_not_kept() -> Self {
        Self::new(
            &NOT_KEPT,
            "The first request with this key succeeded. It is not run again.",
        )
    }

    /// The record is in a coding that the repeat does not accept.
    pub(crate) fn response_not_acceptable() -> Self {
        Self::new(
            &NOT_ACCEPTABLE,
            "The first request with this key succeeded. Its response is in a coding that this \
             one does not accept: send the first one's Accept-Encoding to get it.",
        )
    }

    /// The store does not answer a claim.
    pub(crate) fn store_unavailable(retry_after: Duration) -> Self {
        Self::new(
            &STORE_UNAVAILABLE,
            "The store does not answer; nothing was run. Send the same request again later.",
        )
        .retry(retry_after)
    }

    /// The store does not confirm a record.
    pub(crate) fn unconfirmed(retry_after: Duration) -> Self {
        Self::new(
            &UNCONFIRMED,
            "The request ran and its record is not confirmed. Send the same request again later.",
        )
        .retry(retry_after)
    }

    /// The handler's transaction was not committed.
    pub(crate) fn rolled_back(retry_after: Duration) -> Self {
        Self::new(
            &ROLLED_BACK,
            "The request ran, and what it wrote was rolled back. Send the same request again later.",
        )
        .retry(retry_after)
    }

    /// The handler used its transaction in a way in which it cannot be committed.
    pub(crate) fn transaction_misused() -> Self {
        Self::new(
            &MISUSED,
            "The handler ended its transaction by itself or kept it; the server's log says more.",
        )
    }

    /// The run lost its lease to another.
    pub(crate) fn superseded(retry_after: Duration) -> Self {
        Self::new(
            &SUPERSEDED,
            "Send the same request again later; it will get the other run's answer.",
        )
        .retry(retry_after)
    }

    /// Too many runs go on without a caller.
    pub(crate) fn overloaded(retry_after: Duration) -> Self {
        Self::new(
            &OVERLOADED,
            "Nothing was run. Send the same request again later.",
        )
        .retry(retry_after)
    }

    /// The response broke before its head went out.
    pub(crate) fn response_broken() -> Self {
        Self::new(
            &RESPONSE_BROKEN,
            "The response could not be read to its end. The request may be sent again.",
        )
    }

    fn new(kind: &'static Kind, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            retry_after: None,
        }
    }

    fn retry(self, after: Duration) -> Self {
        Self {
            retry_after: Some(after),
            ..self
        }
    }
}

const INVALID_ARGUMENT: u16 = 3;
const DEADLINE_EXCEEDED: u16 = 4;
const RESOURCE_EXHAUSTED: u16 = 8;
const FAILED_PRECONDITION: u16 = 9;
const ABORTED: u16 = 10;
const UNIMPLEMENTED: u16 = 12;
const INTERNAL: u16 = 13;
const UNAVAILABLE: u16 = 14;
const UNAUTHENTICATED: u16 = 16;

const MISSING_KEY: Kind = Kind {
    status: StatusCode::BAD_REQUEST,
    grpc: INVALID_ARGUMENT,
    code: "missing-key",
    title: "The request has no key",
};

const MALFORMED_KEY: Kind = Kind {
    status: StatusCode::BAD_REQUEST,
    grpc: INVALID_ARGUMENT,
    code: "malformed-key",
    title: "The request's key is malformed",
};

const MISSING_SCOPE: Kind = Kind {
    status: StatusCode::BAD_REQUEST,
    grpc: INVALID_ARGUMENT,
    code: "missing-scope",
    title: "The request names no scope",
};

const MALFORMED_BODY: Kind = Kind {
    status: StatusCode::BAD_REQUEST,
    grpc: INVALID_ARGUMENT,
    code: "malformed-body",
    title: "The request's body is malformed",
};

const UNVERIFIED: Kind = Kind {
    status: StatusCode::UNAUTHORIZED,
    grpc: UNAUTHENTICATED,
    code: "unverified",
    title: "The sender could not be verified",
};

const TOO_LARGE: Kind = Kind {
    status: StatusCode::PAYLOAD_TOO_LARGE,
    grpc: RESOURCE_EXHAUSTED,
    code: "request-too-large",
    title: "The request body is too large",
};

const BODY_CUT: Kind = Kind {
    status: StatusCode::BAD_REQUEST,
    grpc: INVALID_ARGUMENT,
    code: "body-cut",
    title: "The request body is incomplete",
};

const BODY_LATE: Kind = Kind {
    status: StatusCode::REQUEST_TIMEOUT,
    grpc: DEADLINE_EXCEEDED,
    code: "body-late",
    title: "The request body did not come in time",
};

const STREAMING_CALL: Kind = Kind {
    status: StatusCode::BAD_REQUEST,
    grpc: INVALID_ARGUMENT,
    code: "streaming-call",
    title: "A streaming call carries a key",
};

const GRPC_WEB: Kind = Kind {
    status: StatusCode::NOT_IMPLEMENTED,
    grpc: UNIMPLEMENTED,
    code: "grpc-web",
    title: "gRPC-Web is not protected here",
};

const STILL_RUNNING: Kind = Kind {
    status: StatusCode::CONFLICT,
    grpc: ABORTED,
    code: "still-running",
    title: "The first request with this key is still running",
};

const NOT_YET_DONE: Kind = Kind {
    status: StatusCode::SERVICE_UNAVAILABLE,
    grpc: UNAVAILABLE,
    code: "not-yet-done",
    title: "A message of this request is not done yet",
};

const OUTCOME_UNKNOWN: Kind = Kind {
    status: StatusCode::CONFLICT,
    grpc: FAILED_PRECONDITION,
    code: "outcome-unknown",
    title: "Nobody knows yet what became of this request",
};

const KEY_REUSED: Kind = Kind {
    status: StatusCode::UNPROCESSABLE_ENTITY,
    grpc: FAILED_PRECONDITION,
    code: "key-reused",
    title: "This key belongs to another request",
};

const NOT_KEPT: Kind = Kind {
    status: StatusCode::CONFLICT,
    grpc: FAILED_PRECONDITION,
    code: "response-not-kept",
    title: "The request was handled, and its response was not kept",
};

const NOT_ACCEPTABLE: Kind = Kind {
    status: StatusCode::NOT_ACCEPTABLE,
    grpc: FAILED_PRECONDITION,
    code: "response-not-acceptable",
    title: "The request was handled, and its response is in a coding that is not accepted",
};

const STORE_UNAVAILABLE: Kind = Kind {
    status: StatusCode::SERVICE_UNAVAILABLE,
    grpc: UNAVAILABLE,
    code: "store-unavailable",
    title: "The request cannot be protected from running twice",
};

const UNCONFIRMED: Kind = Kind {
    status: StatusCode::SERVICE_UNAVAILABLE,
    grpc: UNAVAILABLE,
    code: "unconfirmed",
    title: "The outcome is not recorded yet",
};

const ROLLED_BACK: Kind = Kind {
    status: StatusCode::SERVICE_UNAVAILABLE,
    grpc: UNAVAILABLE,
    code: "rolled-back",
    title: "The request was not carried out",
};

const MISUSED: Kind = Kind {
    status: StatusCode::INTERNAL_SERVER_ERROR,
    grpc: INTERNAL,
    code: "transaction-misused",
    title: "The request was not recorded",
};

const SUPERSEDED: Kind = Kind {
    status: StatusCode::SERVICE_UNAVAILABLE,
    grpc: UNAVAILABLE,
    code: "superseded",
    title: "Another run of this request took over",
};

const OVERLOADED: Kind = Kind {
    status: StatusCode::SERVICE_UNAVAILABLE,
    grpc: UNAVAILABLE,
    code: "overloaded",
    title: "Too many requests go on after their callers left",
};

const RESPONSE_BROKEN: Kind = Kind {
    status: StatusCode::INTERNAL_SERVER_ERROR,
    grpc: INTERNAL,
    code: "response-broken",
    title: "The handler's response ended with an error",
};
