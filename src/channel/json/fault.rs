//! How a document is read, and why it may not be.

use crate::channel::contract::{Reason, Refusal};

/// Why a document could not be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is no JSON: the line and column where that shows.
    NotJson(usize, usize),
    /// A member of interest occurs twice in one object.
    Repeated(Box<str>),
    /// A text of interest holds a control character, which no sender writes and no store keeps.
    Control,
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::NotJson(line, column) => Self::new(
                Reason::MalformedBody,
                format!("the body is no JSON: line {line}, column {column}"),
            ),
            Fault::Repeated(name) => Self::new(
                Reason::MalformedBody,
                format!("the member {name:?} occurs twice in one object of the body"),
            ),
            Fault::Control => Self::new(
                Reason::MalformedKey,
                "an id, scope or conversation in the body holds a control character",
            ),
        }
    }
}

/// Whether the tree also knows where its entries stand in the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spans {
    /// It does not: one pass.
    Skip,
    /// It does: each level of arrays is read once more.
    Keep,
}
