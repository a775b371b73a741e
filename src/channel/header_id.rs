//! Any sender that names its messages in a header.

use std::time::Duration;

use http::HeaderName;
use http::request::Parts;

use crate::channel::contract::{Ack, Reason, Refusal, Reply, Terms};
use crate::channel::own::{Own, by_own};
use crate::channel::scope::Scope;
use crate::channel::single::{Custom, Missing, options};
use crate::channel::text::present;
use crate::delivery::Delivery;
use crate::record::Keep;
use crate::verify::contract::Verify;
use crate::verify::unverified::Unverified;
use crate::verify::verified::Verified;

/// The channel of a sender that names each message in a header, the same in every attempt.
///
/// A blank id is none, and a request without an id passes unprotected. Two header lines with the
/// id make the request wrong, since readers disagree on which one counts.
///
/// A header is often not covered by the sender's signature: whoever can change it in a signed
/// request that he has seen can send that request again. For keys that clients make use
/// [`IdempotencyKey`](crate::channel::IdempotencyKey).
///
/// It becomes a channel by [`verified_by`](Self::verified_by) or [`unverified`](Self::unverified);
/// its [terms](Terms::webhook) are those of a webhook.
///
/// ```
/// use tower_idempotency::channel::HeaderId;
///
/// let shop = HeaderId::new("shop", "x-shop-delivery").unverified();
/// ```
///
/// With everything said:
///
/// ```
/// # #[cfg(feature = "verify")] {
/// use std::time::Duration;
///
/// use http::HeaderName;
/// use tower_idempotency::Keep;
/// use tower_idempotency::channel::{HeaderId, Reply, Scope};
/// use tower_idempotency::verify::HmacSignature;
///
/// let header = HeaderName::from_static("x-shop-signature");
/// let shop = HeaderId::new("shop", "x-shop-delivery")
///     .scope(Scope::header("x-shop-domain"))
///     .conversation(Scope::header("x-shop-customer"))
///     .required()
///     .wait(Duration::from_secs(2))
///     .keep(Keep::For(Duration::from_hours(72)))
///     .reply(Reply::Record)
///     .verified_by(HmacSignature::sha256(header, "secret"));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct HeaderId {
    custom: Custom,
    header: HeaderName,
}

impl HeaderId {
    /// A channel called `name`, whose ids are in `header`.
    ///
    /// # Panics
    /// If `header` is no header name in lower case.
    pub fn new(name: &str, header: &'static str) -> Self {
        Self {
            custom: Custom::named(name),
            header: HeaderName::from_static(header),
        }
    }

    options!();
}

/// The text of a header; `None` if it is missing or blank.
///
/// # Errors
/// If it is there twice, or no text.
pub(crate) fn text<'a>(head: &'a Parts, name: &HeaderName) -> Result<Option<&'a str>, Refusal> {
    let mut lines = head.headers.get_all(name).iter();
    let Some(line) = lines.next() else {
        return Ok(None);
    };
    let wrong = |fault| {
        let detail = format!("the header {name} {fault}");
        Refusal::new(Reason::MalformedKey, detail)
    };
    if lines.next().is_some() {
        return Err(wrong("occurs twice"));
    }
    let text = std::str::from_utf8(line.as_bytes()).map_err(|_| wrong("is no text"))?;
    Ok(present(Some(text)))
}

impl Own for HeaderId {
    fn terms(&self) -> &Terms {
        &self.custom.terms
    }

    fn deliveries(&self, head: &Parts, body: &[u8]) -> Result<Vec<Delivery>, Refusal> {
        let id = text(head, &self.header)?;
        self.custom.deliveries(head, body, id.map(|id| vec![id]))
    }
}

by_own!(HeaderId);
