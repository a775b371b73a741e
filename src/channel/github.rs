//! GitHub.

use std::time::Duration;

use http::HeaderName;
use http::request::Parts;

use crate::channel::contract::{Channel, Concern, Refusal, Terms};
use crate::channel::header_id;
use crate::channel::json::reader::concern;
use crate::channel::single::Single;
use crate::delivery::Delivery;
use crate::record::Keep;
use crate::verify::contract::Verify;
use crate::verify::verified::Verified;

const DELIVERY: HeaderName = HeaderName::from_static("x-github-delivery");

/// GitHub's webhooks: one event per request, named by the header `X-GitHub-Delivery`.
///
/// GitHub never repeats a delivery by itself; one that is redelivered by hand, or through the API,
/// keeps its id for the three days in which that is possible. A failed run is released, so that
/// redelivering it does something.
///
/// GitHub's signature covers the body and not this header: who has got hold of a signed request can
/// have it run again under another id. Where that matters, name the event by its body, with a
/// [`JsonPath`](crate::channel::JsonPath).
///
/// | | |
/// | --- | --- |
/// | key | `X-GitHub-Delivery` |
/// | scope | none: ids are unique in all of GitHub |
/// | conversation, time | none |
/// | waits | up to 8 s of the 10 s that GitHub waits |
/// | repeats | never by itself; by hand, with the same id |
/// | keeps | three days |
/// | ack | 200 without a body |
///
/// <https://docs.github.com/webhooks/using-webhooks/best-practices-for-using-webhooks>
///
/// ```
/// # #[cfg(feature = "verify")] {
/// use tower_idempotency::channel::GitHub;
/// use tower_idempotency::verify::GitHubSignature;
///
/// let github = GitHub::verified_by(GitHubSignature::new("webhook secret"));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct GitHub {
    terms: Terms,
}

impl GitHub {
    /// Checks each request by `verifier`, such as
    /// [`GitHubSignature`](crate::verify::GitHubSignature), before it is read.
    pub fn verified_by<V: Verify>(verifier: V) -> Verified<Self, V> {
        Verified::new(Self::unverified(), verifier)
    }

    /// Believes every request: for one that was verified in front of the layer.
    pub fn unverified() -> Self {
        Self {
            terms: Terms {
                wait: Duration::from_secs(8),
                keep: Keep::For(Duration::from_hours(72)),
                ..Terms::webhook("github")
            },
        }
    }
}

impl Channel for GitHub {
    fn terms(&self, _head: &Parts) -> &Terms {
        &self.terms
    }

    fn concern(&self, head: &Parts) -> Result<Concern, Refusal> {
        Ok(concern(head))
    }

    fn deliveries(&self, head: &Parts, _body: &[u8]) -> Result<Vec<Delivery>, Refusal> {
        let Some(id) = header_id::text(head, &DELIVERY)? else {
            return Ok(Vec::new());
        };
        let single = Single {
            id: &[id],
            ..Single::default()
        };
        single.delivery(&self.terms.channel)
    }
}
