//! Matrix application services.

use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use percent_encoding::percent_decode_str;

use crate::channel::contract::{Ack, Channel, Concern, Reason, Refusal, Terms};
use crate::channel::path::path_of;
use crate::channel::scope::Scope;
use crate::channel::single::Single;
use crate::delivery::Delivery;
use crate::record::Keep;
use crate::verify::contract::Verify;
use crate::verify::verified::Verified;

/// What a homeserver pushes to an application service: `PUT …/transactions/{txnId}`.
///
/// A transaction is one message, whatever number of events is in it: the homeserver may not change
/// it when it repeats, and sends the next one only when this one was accepted. Synapse repeats
/// without end, but only the last transaction that was not accepted; so a retention of a month is
/// enough, except after a longer outage.
///
/// `POST …/ping` is verified and passes; other methods and paths do not concern the channel.
///
/// | | |
/// | --- | --- |
/// | key | `txnId`, the last segment of the path, percent-decoded |
/// | scope | asked for: which homeserver it is |
/// | conversation, time | none: a transaction spans rooms |
/// | waits | up to 30 s of the 60 s that Synapse waits |
/// | repeats | without end |
/// | keeps | 30 days |
/// | ack | 200, `{}` |
///
/// <https://spec.matrix.org/latest/application-service-api/#pushing-events>
///
/// ```
/// # #[cfg(feature = "verify")] {
/// use tower_idempotency::channel::{Matrix, Scope};
/// use tower_idempotency::verify::MatrixToken;
///
/// let matrix = Matrix::verified_by(MatrixToken::new("hs_token"), Scope::fixed("example.org"));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Matrix {
    terms: Terms,
    homeserver: Scope,
}

impl Matrix {
    /// Checks each request by `verifier`, such as [`MatrixToken`](crate::verify::MatrixToken),
    /// before it is read. `homeserver` says whose transactions they are.
    pub fn verified_by<V: Verify>(verifier: V, homeserver: Scope) -> Verified<Self, V> {
        Verified::new(Self::unverified(homeserver), verifier)
    }

    /// Believes every request: for one that was verified in front of the layer.
    ///
    /// Transaction ids count up by one. Who can post the next one suppresses the real one.
    pub fn unverified(homeserver: Scope) -> Self {
        Self {
            terms: Terms {
                wait: Duration::from_secs(30),
                keep: Keep::For(Duration::from_hours(30 * 24)),
                ack: Ack {
                    status: StatusCode::OK,
                    content_type: Some(HeaderValue::from_static("application/json")),
                    body: Bytes::from_static(b"{}"),
                },
                ..Terms::webhook("matrix")
            },
            homeserver,
        }
    }
}

/// The transaction's id, as it stands in the path: also under a prefix, and on the path of old
/// homeservers.
fn transaction(head: &Parts) -> Option<&str> {
    let (before, id) = path_of(head).rsplit_once('/')?;
    let pushed = head.method == Method::PUT && before.ends_with("/transactions");
    (pushed && !id.is_empty()).then_some(id)
}

fn is_ping(head: &Parts) -> bool {
    head.method == Method::POST && path_of(head).ends_with("/_matrix/app/v1/ping")
}

impl Channel for Matrix {
    fn terms(&self, _head: &Parts) -> &Terms {
        &self.terms
    }

    fn concern(&self, head: &Parts) -> Result<Concern, Refusal> {
        if transaction(head).is_some() || is_ping(head) {
            Ok(Concern::Read)
        } else {
            Ok(Concern::Pass)
        }
    }

    fn deliveries(&self, head: &Parts, body: &[u8]) -> Result<Vec<Delivery>, Refusal> {
        let Some(id) = transaction(head) else {
            return Ok(Vec::new());
        };
        let id = percent_decode_str(id).decode_utf8().map_err(|_| {
            let detail = "the transaction's id in the path is no UTF-8";
            Refusal::new(Reason::MalformedKey, detail)
        })?;
        let single = Single {
            scope: &self.homeserver.of(head, body)?,
            id: &[&id],
            ..Single::default()
        };
        single.delivery(&self.terms.channel)
    }
}
