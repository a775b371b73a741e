//! Any sender that posts a form.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;

use crate::channel::contract::{Ack, Refusal, Reply, Terms};
use crate::channel::form::fields;
use crate::channel::json::pick::Pick;
use crate::channel::own::{Own, by_own};
use crate::channel::scope::Scope;
use crate::channel::single::{Custom, Missing, options};
use crate::channel::text::present;
use crate::delivery::Delivery;
use crate::error::Error;
use crate::record::Keep;
use crate::verify::contract::Verify;
use crate::verify::unverified::Unverified;
use crate::verify::verified::Verified;

/// The channel of a sender that posts an urlencoded form, one message in each.
///
/// A blank field is no id, and a request without an id passes unprotected. A field that occurs
/// twice and says two things makes the request wrong, since readers disagree on which one counts,
/// and so does an id that is no UTF-8.
///
/// It becomes a channel by [`verified_by`](Self::verified_by) or [`unverified`](Self::unverified);
/// its [terms](Terms::webhook) are those of a webhook.
///
/// ```
/// use tower_idempotency::channel::FormField;
///
/// let sms = FormField::new("sms", "MessageId").unverified();
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
/// use tower_idempotency::channel::{FormField, Reply, Scope};
/// use tower_idempotency::verify::HmacSignature;
///
/// let header = HeaderName::from_static("x-shop-signature");
/// let status = FormField::new("sms-status", "MessageId")
///     .and("Status")
///     .scope(Scope::form_field("Account"))
///     .conversation(Scope::form_field("From"))
///     .required()
///     .wait(Duration::from_secs(2))
///     .keep(Keep::For(Duration::from_hours(72)))
///     .reply(Reply::Record)
///     .verified_by(HmacSignature::sha256(header, "secret"));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct FormField {
    custom: Custom,
    parts: Vec<Part>,
}

/// A part of the id: a field, or a place in the JSON document that a field holds.
#[derive(Clone, Debug)]
struct Part {
    field: Box<str>,
    json: Option<Arc<Pick>>,
}

impl FormField {
    /// A channel called `name`, whose ids are in `field`.
    pub fn new(name: &str, field: &str) -> Self {
        Self {
            custom: Custom::named(name),
            parts: vec![Part::field(field)],
        }
    }

    /// A channel called `name`, whose ids are at `path` in the JSON document that `field` holds.
    /// [`JsonPath`](crate::channel::JsonPath) says which paths there are.
    ///
    /// A field that holds no JSON has no id, nor does one with several texts at that path.
    ///
    /// ```
    /// use tower_idempotency::channel::FormField;
    ///
    /// # fn main() -> Result<(), tower_idempotency::Error> {
    /// let buttons = FormField::json("buttons", "payload", "$.trigger_id")?.unverified();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the path cannot be read; the error points at the character.
    pub fn json(name: &str, field: &str, path: &str) -> Result<Self, Error> {
        let part = Part {
            field: field.into(),
            json: Some(Arc::new(Pick::new(path)?)),
        };
        Ok(Self {
            custom: Custom::named(name),
            parts: vec![part],
        })
    }

    /// One more field whose value is a part of the id. A message without it has no id; two ids are
    /// equal only if all their parts are.
    pub fn and(mut self, field: &str) -> Self {
        self.parts.push(Part::field(field));
        self
    }

    options!();

    fn id<'a>(&self, body: &'a [u8]) -> Result<Option<Vec<Cow<'a, str>>>, Refusal> {
        let names: Vec<&str> = self.parts.iter().map(|part| &*part.field).collect();
        let values = fields(body, &names)?;
        let parts = self.parts.iter().zip(values);
        Ok(parts.map(|(part, value)| part.of(value?)).collect())
    }
}

impl Part {
    fn field(field: &str) -> Self {
        Self {
            field: field.into(),
            json: None,
        }
    }

    fn of<'a>(&self, value: Cow<'a, str>) -> Option<Cow<'a, str>> {
        let Some(pick) = &self.json else {
            return present(Some(value));
        };
        let mut texts = pick.texts(value.as_bytes()).ok()?.into_iter();
        match (texts.next(), texts.next()) {
            (Some(text), None) => present(Some(text)).map(Cow::Owned),
            (None | Some(_), _) => None,
        }
    }
}

impl Scope {
    /// The value of a field of an urlencoded form. Costs a pass over the body.
    pub fn form_field(name: &str) -> Self {
        let field: Box<str> = name.into();
        Self::by_body(&format!("the field {name}"), move |body| {
            let value = fields(body, &[&field])?.pop().flatten();
            Ok(value.map(Cow::into_owned))
        })
    }
}

impl Own for FormField {
    fn terms(&self) -> &Terms {
        &self.custom.terms
    }

    fn deliveries(&self, head: &Parts, body: &[u8]) -> Result<Vec<Delivery>, Refusal> {
        self.custom.deliveries(head, body, self.id(body)?)
    }
}

by_own!(FormField);
