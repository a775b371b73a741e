//! What is wrong with the file, and where.

use std::fmt;
use std::ops::Range;

/// One fault.
#[derive(Debug)]
struct Fault {
    line: usize,
    column: usize,
    field: String,
    what: String,
}

/// The faults of one file, by line.
#[derive(Debug)]
pub(crate) struct Faults<'a> {
    path: &'a str,
    text: &'a str,
    found: Vec<Fault>,
}

impl<'a> Faults<'a> {
    pub(crate) fn new(path: &'a str, text: &'a str) -> Self {
        Self {
            path,
            text,
            found: Vec::new(),
        }
    }

    /// Notes a fault of the field whose value, or table, stands at `span`.
    pub(crate) fn add(&mut self, span: Range<usize>, field: &str, what: impl fmt::Display) {
        let before = self.text.get(..span.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        self.found.push(Fault {
            line,
            column,
            field: field.to_owned(),
            what: what.to_string(),
        });
    }

    /// Notes what the reader of TOML says. The field is the one that the line names.
    pub(crate) fn add_unread(&mut self, error: &toml::de::Error) {
        let span = error.span().unwrap_or_default();
        let start = self.text.get(..span.start).unwrap_or_default();
        let start = start.rfind('\n').map_or(0, |at| at + 1);
        let line = self.text.get(start..).unwrap_or_default();
        let line = line.lines().next().unwrap_or_default();
        let field = match line.split_once('=') {
            Some((field, _)) => field.trim(),
            None => line.trim(),
        };
        self.add(span, field, error.message());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
}

impl fmt::Display for Faults<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut found: Vec<&Fault> = self.found.iter().collect();
        found.sort_by_key(|fault| (fault.line, fault.column));
        for (at, fault) in found.into_iter().enumerate() {
            let newline = if at == 0 { "" } else { "\n" };
            let Fault {
                line,
                column,
                field,
                what,
            } = fault;
            write!(f, "{newline}{}:{line}:{column}: {field}: {what}", self.path)?;
        }
        Ok(())
    }
}
