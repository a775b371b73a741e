//! Picks the texts at one path out of a document.

use crate::channel::contract::Refusal;
use crate::channel::json::fault::Spans;
use crate::channel::json::path::{Path, Step};
use crate::channel::json::read::read;
use crate::channel::json::shape::Shape;
use crate::channel::json::tree::Node;
use crate::error::Error;

/// Reads the texts at one path.
#[derive(Debug)]
pub(crate) struct Pick {
    path: Path,
    shape: Shape,
}

impl Pick {
    /// Reads what stands at `path`.
    pub(crate) fn new(path: &str) -> Result<Self, Error> {
        let path = Path::parse(path)?;
        let shape = Shape::of(std::slice::from_ref(&path));
        Ok(Self { path, shape })
    }

    /// Where it reads.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The texts in `body`.
    pub(crate) fn texts(&self, body: &[u8]) -> Result<Vec<String>, Refusal> {
        let tree = read(body, &self.shape, Spans::Skip)?;
        let mut texts = Vec::new();
        gather(self.path.steps(), tree.node(), &mut texts);
        Ok(texts)
    }
}

fn gather(steps: &[Step], node: Node<'_>, texts: &mut Vec<String>) {
    match steps.split_first() {
        None => texts.extend(node.text().map(str::to_owned)),
        Some((Step::Each, rest)) => node.children().for_each(|it| gather(rest, it, texts)),
        Some((Step::Name(_) | Step::Index(_), rest)) => {
            let next = node.follow(steps.get(..1).unwrap_or_default());
            gather(rest, next, texts);
        }
    }
}
