//! Which places of a document are of interest.

use crate::channel::json::path::{Path, Step};

/// The places that a set of paths names, as one tree: what a reader keeps of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Whether the text that stands here is wanted.
    pub(crate) text: bool,
    /// What is wanted of the members of an object.
    pub(crate) members: Vec<(Box<str>, Self)>,
    /// What is wanted of every element of an array, or member of an object.
    pub(crate) each: Option<Box<Self>>,
}

impl Shape {
    /// The places that `paths` name.
    pub(crate) fn of(paths: &[Path]) -> Self {
        let mut shape = Self::default();
        for path in paths {
            shape.add(path.steps());
        }
        shape.spread();
        shape
    }

    /// The places that a channel of this crate reads.
    #[expect(
        clippy::expect_used,
        reason = "the paths are constants of this crate, and a test builds every channel"
    )]
    pub(crate) fn reading<P: AsRef<str>>(paths: &[P]) -> Self {
        let parsed = paths.iter().map(|path| Path::parse(path.as_ref()));
        let paths: Vec<_> = parsed.collect::<Result<_, _>>().expect("a constant path");
        Self::of(&paths)
    }

    /// Whether anything below this place is wanted.
    pub(crate) fn is_branch(&self) -> bool {
        self.each.is_some() || !self.members.is_empty()
    }

    /// The member `name`, and its number.
    pub(crate) fn member(&self, name: &str) -> Option<(u32, &Self)> {
        let mut members = (0..).zip(&self.members);
        let (number, (_, shape)) = members.find(|(_, (known, _))| **known == *name)?;
        Some((number, shape))
    }

    /// The member of that number.
    pub(crate) fn named(&self, number: u32) -> Option<&Self> {
        let (_, shape) = self.members.get(usize::try_from(number).ok()?)?;
        Some(shape)
    }

    /// The name of the member of that number; empty if there is none.
    pub(crate) fn name(&self, number: u32) -> &str {
        let at = usize::try_from(number).ok();
        let member = at.and_then(|at| self.members.get(at));
        member.map_or("", |(name, _)| name)
    }

    fn add(&mut self, steps: &[Step]) {
        match steps.split_first() {
            None => self.text = true,
            Some((Step::Name(name), rest)) => self.member_mut(name).add(rest),
            // An index keeps all elements, so that it can count from either end.
            Some((Step::Index(_) | Step::Each, rest)) => {
                self.each.get_or_insert_default().add(rest);
            }
        }
    }

    fn member_mut(&mut self, name: &str) -> &mut Self {
        let known = self.members.iter().position(|(known, _)| **known == *name);
        let at = known.unwrap_or_else(|| {
            self.members.push((name.into(), Self::default()));
            self.members.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "it was just found or added")]
        &mut self.members[at].1
    }

    /// A wildcard also selects the members that are named.
    fn spread(&mut self) {
        for (_, member) in &mut self.members {
            if let Some(each) = &self.each {
                member.merge(each);
            }
            member.spread();
        }
        if let Some(each) = &mut self.each {
            each.spread();
        }
    }

    fn merge(&mut self, other: &Self) {
        self.text |= other.text;
        for (name, member) in &other.members {
            self.member_mut(name).merge(member);
        }
        if let Some(each) = &other.each {
            self.each.get_or_insert_default().merge(each);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_a_common_start_share_it() {
        let shape = Shape::reading(&["$.a[*].id", "$.a[*].from.id", "$.b"]);
        assert_eq!(shape.members.len(), 2);
        let each = shape.members[0].1.each.as_deref().unwrap();
        let number = |name| each.member(name).map(|(number, _)| number);
        assert_eq!(
            (number("id"), number("from"), number("to")),
            (Some(0), Some(1), None)
        );
        assert!(shape.members[1].1.text && !shape.members[0].1.text);
    }

    #[test]
    fn a_wildcard_reaches_the_named_members_as_well() {
        let shape = Shape::reading(&["$.a.name", "$.*.id"]);
        assert_eq!(shape, Shape::reading(&["$.a.name", "$.a.id", "$.*.id"]));
    }
}
