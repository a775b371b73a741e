//! Cuts elements out of the arrays of a document.

use std::collections::HashSet;
use std::ops::Range;

use bytes::Bytes;

use crate::channel::json::tree::{Node, Tree};

/// `body` without the elements `gone`: each goes with one comma, every other byte stays.
///
/// `None` if one of them is no element of an array, so that it cannot go.
pub(crate) fn cut(body: &Bytes, tree: &Tree<'_>, mut gone: HashSet<u32>) -> Option<Bytes> {
    let mut holes = Vec::new();
    dig(body, tree.node(), &mut gone, &mut holes)?;
    if !gone.is_empty() {
        return None;
    }
    if holes.is_empty() {
        return Some(body.clone());
    }
    holes.sort_unstable_by_key(|hole| hole.start);
    let mut left = Vec::with_capacity(body.len());
    let mut at = 0;
    for hole in holes {
        left.extend_from_slice(body.get(at..hole.start)?);
        at = hole.end;
    }
    left.extend_from_slice(body.get(at..)?);
    Some(left.into())
}

/// Finds the bytes that go, and takes the elements that were met out of `gone`.
fn dig(
    body: &[u8],
    node: Node<'_>,
    gone: &mut HashSet<u32>,
    holes: &mut Vec<Range<usize>>,
) -> Option<()> {
    let children: Vec<_> = node.children().collect();
    let goes: Vec<_> = children
        .iter()
        .map(|child| node.is_array() && gone.remove(&child.entry()))
        .collect();
    let last_to_stay = goes.iter().rposition(|goes| !goes);
    for (at, (child, goes)) in children.iter().zip(&goes).enumerate() {
        if !goes {
            dig(body, *child, gone, holes)?;
            continue;
        }
        holes.push(child.span()?);
        // Before one that stays the comma behind goes, else the comma in front.
        let neighbours = match last_to_stay {
            Some(last) if at < last => (Some(child), children.get(at + 1)),
            _ => (
                at.checked_sub(1).and_then(|at| children.get(at)),
                Some(child),
            ),
        };
        if let (Some(left), Some(right)) = neighbours {
            holes.push(comma(body, left.span()?.end..right.span()?.start)?);
        }
    }
    Some(())
}

/// The comma in a gap between two elements.
fn comma(body: &[u8], gap: Range<usize>) -> Option<Range<usize>> {
    let at = gap.start + memchr::memchr(b',', body.get(gap)?)?;
    Some(at..at + 1)
}
