//! Texts of a request that may become part of a key.

use crate::channel::contract::{Reason, Refusal};

/// Longer than any sender's id, short enough to keep and to index.
const LONGEST: usize = 1024;

/// `text`, unless it is blank: a blank id is none.
pub(crate) fn present<T: AsRef<str>>(text: Option<T>) -> Option<T> {
    text.filter(|text| !text.as_ref().trim().is_empty())
}

/// Refuses a text that no sender's id, scope or conversation is.
pub(crate) fn check(text: &str) -> Result<(), Refusal> {
    let fault = if text.len() > LONGEST {
        "is longer than 1024 bytes"
    } else if text.bytes().any(|byte| byte.is_ascii_control()) {
        "holds a control character"
    } else {
        return Ok(());
    };
    let detail = format!("an id, scope or conversation of the request {fault}");
    Err(Refusal::new(Reason::MalformedKey, detail))
}
