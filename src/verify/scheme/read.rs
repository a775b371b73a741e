//! Signatures as they are written in requests.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderName;
use http::request::Parts;

use crate::channel::contract::Refusal;

/// The value of a header that must be there once.
pub(crate) fn header<'a>(head: &'a Parts, name: &HeaderName) -> Result<&'a str, Refusal> {
    let mut lines = head.headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (Some(line), None) => line
            .to_str()
            .map_err(|_| Refusal::unverified(format!("the header `{name}` is no text"))),
        (None, _) => Err(Refusal::unverified(format!(
            "the header `{name}` is missing"
        ))),
        (Some(_), Some(_)) => Err(Refusal::unverified(format!(
            "the header `{name}` is there twice"
        ))),
    }
}

/// The value of a query parameter that must be there once.
pub(crate) fn parameter<'a>(head: &'a Parts, name: &str) -> Result<Cow<'a, str>, Refusal> {
    let query = head.uri.query().unwrap_or_default();
    let mut found = form_urlencoded::parse(query.as_bytes())
        .filter(|(n, _)| n == name)
        .map(|(_, value)| value);
    match (found.next(), found.next()) {
        (Some(value), None) => Ok(value),
        (None, _) => Err(Refusal::unverified(format!(
            "the query parameter `{name}` is missing"
        ))),
        (Some(_), Some(_)) => Err(Refusal::unverified(format!(
            "the query parameter `{name}` is there twice"
        ))),
    }
}

/// Bytes written in lower-case hexadecimal digits, as every sender writes them.
pub(crate) fn hex(text: &str) -> Option<Vec<u8>> {
    let upper = text.bytes().any(|byte| byte.is_ascii_uppercase());
    hex::decode(text).ok().filter(|_| !upper)
}

/// Bytes written in base64, padded.
pub(crate) fn base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

pub(crate) fn wrong() -> Refusal {
    Refusal::unverified("the signature does not fit")
}
