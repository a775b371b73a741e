//! Reads the places of interest out of a document, and checks all of it on the way.

use serde::de::DeserializeSeed;
use serde_json::Deserializer as Json;

use crate::channel::json::fault::{Fault, Spans};
use crate::channel::json::place::{Digits, Leaves, Place, Reading};
use crate::channel::json::shape::Shape;
use crate::channel::json::tree::Tree;

/// Reads what `shape` names out of `body`.
///
/// The whole body is checked. What is skipped is skipped without recursion, so that no nesting is
/// too deep; what is read is no deeper than the shape. Members repeated at a place of interest
/// are a fault: readers disagree on which of them counts.
pub(crate) fn read<'a>(body: &'a [u8], shape: &'a Shape, spans: Spans) -> Result<Tree<'a>, Fault> {
    let text = str::from_utf8(body).map_err(|error| not_utf8(body, error.valid_up_to()))?;
    if spans == Spans::Skip {
        // What fails here may be right digit by digit: `1e999`, an integer of thirty digits.
        match document(Reading::new(text, Leaves::Parsed, spans), text, shape) {
            Ok((tree, Digits::Kept)) => return Ok(tree),
            Ok((_, Digits::Lost)) | Err(Fault::NotJson(..)) => {}
            Err(fault @ (Fault::Repeated(_) | Fault::Control)) => return Err(fault),
        }
    }
    let (tree, _) = document(Reading::new(text, Leaves::Raw, spans), text, shape)?;
    Ok(tree)
}

fn document<'a>(
    mut reading: Reading<'a>,
    text: &'a str,
    shape: &'a Shape,
) -> Result<(Tree<'a>, Digits), Fault> {
    let mut json = Json::from_str(text);
    let root = Place::new(shape, &mut reading).deserialize(&mut json);
    match root.and_then(|root| json.end().map(|()| root)) {
        Ok(root) => {
            let tree = Tree {
                shape,
                entries: reading.entries,
                spans: reading.positions,
                root,
            };
            Ok((tree, reading.digits))
        }
        Err(error) => Err(match reading.fault {
            Some(fault) => fault,
            None => Fault::NotJson(error.line(), error.column()),
        }),
    }
}

fn not_utf8(body: &[u8], at: usize) -> Fault {
    let before = body.get(..at).unwrap_or_default();
    let line = memchr::memchr_iter(b'\n', before).count();
    let start = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
    Fault::NotJson(line + 1, at - start + 1)
}
