//! Texts of a request that may become part of a key.

use crate::channel::contract::{Reason, Refusal};

/// Longer than any sender's id, short enough to keep and to index.
pub(crate) const LONGEST: usize = 1024;

/// `text`, unless it is blank: a blank id is none.
pub(crate) fn present<T: AsRef<str>>(text: Option<T>) -> Option<T> {
    text.filter(|text| !text.as_ref().trim().is_empty())
}

/// Refuses a text that no sender's id, scope or conversation is.
pub(crate) fn check(text: &str) -> Result<(), Refusal> {
    if text.len() > LONGEST {
        return Err(too_long());
    }
    if text.contains(|c: char| c.is_ascii_control()) {
        let detail = "an id, scope or conversation of the request holds a control character";
        return Err(Refusal::new(Reason::MalformedKey, detail));
    }
    Ok(())
}

/// Says that a text is longer than any sender's.
pub(crate) fn too_long() -> Refusal {
    let detail = format!("an id, scope or conversation is longer than {LONGEST} bytes");
    Refusal::new(Reason::MalformedKey, detail)
}
