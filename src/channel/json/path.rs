//! Paths into a JSON document: the part of RFC 9535 that names places one by one.

use std::fmt;

use crate::channel::json::cursor::Cursor;
use crate::error::Error;

/// A path into a document: child names, indices and wildcards of [RFC 9535].
///
/// [RFC 9535]: https://www.rfc-editor.org/rfc/rfc9535
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    text: Box<str>,
    from: From,
    steps: Vec<Step>,
}

/// Where a path starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Root,
    Here,
}

/// One step down into a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The member of that name.
    Name(Box<str>),
    /// The element at that place; negative from the end.
    Index(i64),
    /// Every element of an array, every member of an object.
    Each,
}

/// More steps than any real path has, few enough to recurse over.
const DEEPEST: usize = 64;

impl Path {
    /// Reads a path from the root (`$.a[0]`) or from where one stands (`.a[0]`, `@.a[0]`).
    ///
    /// # Errors
    /// If the text is no path, or uses what is not supported; the error points at the character.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        Self::parse_with(text, |_, _| Ok(()))
    }

    /// As [`parse`](Self::parse), for a path that leads to one place: a wildcard is an error.
    pub(crate) fn parse_single(text: &str) -> Result<Self, Error> {
        Self::parse_with(text, |start, step| match step {
            Step::Each => Err(start.fault("no wildcard here: the path must lead to one place")),
            Step::Name(_) | Step::Index(_) => Ok(()),
        })
    }

    fn parse_with(
        text: &str,
        accept: impl Fn(&Cursor<'_>, &Step) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let mut cursor = Cursor::new(text);
        let from = match cursor.peek() {
            Some('$') => From::Root,
            Some('@' | '.' | '[') => From::Here,
            _ => return Err(cursor.fault("a path starts with `$`, or with `.` or `[`")),
        };
        if matches!(cursor.peek(), Some('$' | '@')) {
            cursor.advance();
        }
        let mut steps = Vec::new();
        cursor.skip_blank();
        while cursor.peek().is_some() {
            if steps.len() == DEEPEST {
                return Err(cursor.fault("the path has more than 64 steps"));
            }
            let start = cursor.clone();
            let step = step(&mut cursor)?;
            accept(&start, &step)?;
            steps.push(step);
            cursor.skip_blank();
        }
        if text.ends_with([' ', '\t', '\n', '\r']) {
            return Err(cursor.fault("the path ends in white space"));
        }
        Ok(Self {
            text: text.into(),
            from,
            steps,
        })
    }

    /// The steps, outermost first.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// This path, and `other` from where it ends.
    pub(crate) fn join(&self, other: &Self) -> Self {
        let steps = self.steps.iter().chain(&other.steps).cloned().collect();
        Self {
            text: format!("{}{}", self.text, other.text.trim_start_matches('@')).into(),
            from: self.from,
            steps,
        }
    }

    /// This path from the root, if one stands at `here`.
    pub(crate) fn seen_from(&self, here: &Self) -> Self {
        match self.from {
            From::Root => self.clone(),
            From::Here => here.join(self),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn step(cursor: &mut Cursor<'_>) -> Result<Step, Error> {
    if cursor.take('[') {
        return bracket(cursor);
    }
    if !cursor.take('.') {
        return Err(cursor.fault("a step starts with `.` or `[`"));
    }
    match cursor.peek() {
        Some('.') => Err(cursor.fault("`..` is not supported: name each step")),
        Some('*') => {
            cursor.advance();
            Ok(Step::Each)
        }
        Some('[') => Err(cursor.fault("no `.` before `[`")),
        _ => shorthand(cursor),
    }
}

/// `member-name-shorthand`: RFC 9535, section 2.5.1.1.
fn shorthand(cursor: &mut Cursor<'_>) -> Result<Step, Error> {
    let mut name = String::new();
    while let Some(c) = cursor.peek() {
        let first = c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
        if !first && (name.is_empty() || !c.is_ascii_digit()) {
            break;
        }
        name.push(c);
        cursor.advance();
    }
    match cursor.peek() {
        _ if name.is_empty() => Err(cursor.fault("a name must stand here; others go in `['…']`")),
        Some('.' | '[' | ' ' | '\t' | '\n' | '\r') | None => Ok(Step::Name(name.into())),
        Some(_) => Err(cursor.fault("not in a bare name: write it as `['…']`")),
    }
}

fn bracket(cursor: &mut Cursor<'_>) -> Result<Step, Error> {
    cursor.skip_blank();
    let step = match cursor.peek() {
        Some('*') => {
            cursor.advance();
            Step::Each
        }
        Some(quote @ ('\'' | '"')) => {
            cursor.advance();
            Step::Name(cursor.quoted(quote)?.into())
        }
        Some('-' | '0'..='9') => Step::Index(cursor.integer()?),
        Some(':') => return Err(cursor.fault("slices are not supported: use `*` or one index")),
        Some('?') => return Err(cursor.fault("filters are not supported")),
        _ => return Err(cursor.fault("an index, `*` or a quoted name must stand here")),
    };
    cursor.skip_blank();
    match cursor.peek() {
        Some(']') => {
            cursor.advance();
            Ok(step)
        }
        Some(':') => Err(cursor.fault("slices are not supported: use `*` or one index")),
        Some(',') => Err(cursor.fault("several selectors are not supported: use one")),
        _ => Err(cursor.fault("`]` must stand here")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str) -> Vec<Step> {
        Path::parse(text).unwrap().steps
    }

    fn name(text: &str) -> Step {
        Step::Name(text.into())
    }

    #[test]
    fn names_indices_and_wildcards_are_read() {
        assert_eq!(
            steps("$.entry[*].a_1[0][-2].*"),
            [
                name("entry"),
                Step::Each,
                name("a_1"),
                Step::Index(0),
                Step::Index(-2),
                Step::Each
            ]
        );
        assert_eq!(steps("$"), []);
        assert_eq!(steps("$ [ 'a' ] .b"), [name("a"), name("b")]);
        assert_eq!(steps("$.ключ"), [name("ключ")]);
    }

    #[test]
    fn a_relative_path_starts_with_a_step() {
        assert_eq!(steps(".id"), [name("id")]);
        assert_eq!(steps("@.id"), [name("id")]);
        assert_eq!(steps("['id']"), [name("id")]);
    }

    #[test]
    fn quoted_names_have_escapes() {
        assert_eq!(steps(r#"$["a\"b'c"]"#), [name("a\"b'c")]);
        assert_eq!(
            steps(r"$['a\'b\\\/\n\u0041\ud83d\ude00']"),
            [name("a'b\\/\nA😀")]
        );
        assert_eq!(steps("$['ce-id']['']"), [name("ce-id"), name("")]);
    }

    /// Where the caret of the error stands, in characters.
    fn fault_at(text: &str) -> usize {
        let error = Path::parse(text).unwrap_err();
        assert!(error.is_misconfigured());
        let shown = error.to_string();
        let mut lines = shown.lines().skip(1);
        let (path, caret) = (lines.next().unwrap(), lines.next().unwrap());
        let margin = path.chars().count() - text.chars().count();
        caret.chars().count() - 1 - margin
    }

    #[test]
    fn an_error_points_at_the_character() {
        for (text, at) in [
            ("", 0),
            ("entry", 0),
            ("$entry", 1),
            ("$.", 2),
            ("$..id", 2),
            ("$.a.", 4),
            ("$.1a", 2),
            ("$.ce-id", 4),
            ("$.é!", 3),
            ("$.[0]", 2),
            ("$[", 2),
            ("$[]", 2),
            ("$[a]", 2),
            ("$[0", 3),
            ("$[01]", 3),
            ("$[-]", 3),
            ("$[-0]", 3),
            ("$[9007199254740992]", 2),
            ("$[0:2]", 3),
            ("$[:2]", 2),
            ("$['a','b']", 5),
            ("$[?@.a]", 2),
            ("$['a", 4),
            (r"$['\x']", 4),
            (r"$['\u12']", 7),
            (r"$['\ud800']", 9),
            (r"$['\udc00']", 9),
            ("$['a\tb']", 4),
            ("$.a ", 4),
        ] {
            assert_eq!(fault_at(text), at, "{text}");
        }
    }

    #[test]
    fn a_path_has_at_most_64_steps() {
        assert_eq!(steps(&format!("${}", ".a".repeat(64))).len(), 64);
        assert_eq!(fault_at(&format!("${}", ".a".repeat(65))), 129);
    }
}
