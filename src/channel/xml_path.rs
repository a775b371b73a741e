//! Any sender that posts XML.

use std::time::Duration;

use http::request::Parts;

use crate::channel::contract::{Ack, Refusal, Reply, Terms};
use crate::channel::own::{Own, by_own};
use crate::channel::scope::Scope;
use crate::channel::single::{Custom, Missing, options};
use crate::channel::text::present;
use crate::channel::xml::{self, Fault, texts};
use crate::delivery::Delivery;
use crate::error::Error;
use crate::record::Keep;
use crate::verify::contract::Verify;
use crate::verify::unverified::Unverified;
use crate::verify::verified::Verified;

/// The channel of a sender that posts an XML document, one message in each.
///
/// A path names elements from the root down, such as `/order/id`. An element that is blank is no
/// id; a request without an id, and a body that is no XML, pass unprotected. An element that occurs
/// twice makes the request wrong, and so does a document type: entities are never expanded, nothing
/// is loaded, and the work is one pass over the body.
///
/// Its [terms](Terms::webhook) are those of a webhook. Needs the feature `xml`.
///
/// ```
/// use tower_idempotency::channel::XmlPath;
///
/// # fn main() -> Result<(), tower_idempotency::Error> {
/// let orders = XmlPath::new("orders", "/order/id")?.unverified();
/// # Ok(())
/// # }
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
/// use tower_idempotency::channel::{Reply, Scope, XmlPath};
/// use tower_idempotency::verify::HmacSignature;
///
/// # fn main() -> Result<(), tower_idempotency::Error> {
/// let header = HeaderName::from_static("x-shop-signature");
/// let orders = XmlPath::new("orders", "/order/id")?
///     .and("/order/status")?
///     .scope(Scope::xml("/order/shop")?)
///     .conversation(Scope::xml("/order/customer")?)
///     .required()
///     .wait(Duration::from_secs(2))
///     .keep(Keep::For(Duration::from_hours(72)))
///     .reply(Reply::Record)
///     .verified_by(HmacSignature::sha256(header, "secret"));
/// # Ok(())
/// # }
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct XmlPath {
    custom: Custom,
    parts: Vec<Box<str>>,
}

impl XmlPath {
    /// A channel called `name`, whose ids are in the element at `path`.
    ///
    /// # Errors
    /// If `path` does not name elements from the root down, such as `/order/id`.
    pub fn new(name: &str, path: &str) -> Result<Self, Error> {
        let channel = Self {
            custom: Custom::named(name),
            parts: Vec::with_capacity(1),
        };
        channel.and(path)
    }

    /// One more element whose text is a part of the id. A message without it has no id; two ids are
    /// equal only if all their parts are.
    ///
    /// # Errors
    /// If `path` does not name elements from the root down, or is there already.
    pub fn and(mut self, path: &str) -> Result<Self, Error> {
        let path = xml::path(path)?;
        if self.parts.contains(&path) {
            return Err(Error::misconfigured("an element is a part of the id twice"));
        }
        self.parts.push(path);
        Ok(self)
    }

    options!();

    fn id(&self, body: &[u8]) -> Result<Option<Vec<String>>, Refusal> {
        let paths: Vec<&str> = self.parts.iter().map(|part| &**part).collect();
        match (texts(body, &paths), self.custom.missing) {
            (Ok(texts), _) => Ok(texts.into_iter().map(present).collect()),
            (Err(Fault::NotXml), Missing::Pass) => Ok(None),
            (Err(fault), _) => Err(fault.into()),
        }
    }
}

impl Scope {
    /// The text of the element at `path` of an XML document, as [`XmlPath`] reads it. Costs a pass
    /// over the body. Needs the feature `xml`.
    ///
    /// # Errors
    /// If `path` does not name elements from the root down, such as `/order/shop`.
    pub fn xml(path: &str) -> Result<Self, Error> {
        let what = format!("the element {path}");
        let path = xml::path(path)?;
        let read = move |body: &[u8]| Ok(texts(body, &[&path])?.pop().flatten());
        Ok(Self::by_body(&what, read))
    }
}

impl Own for XmlPath {
    fn terms(&self) -> &Terms {
        &self.custom.terms
    }

    fn deliveries(&self, head: &Parts, body: &[u8]) -> Result<Vec<Delivery>, Refusal> {
        self.custom.deliveries(head, body, self.id(body)?)
    }
}

by_own!(XmlPath);
