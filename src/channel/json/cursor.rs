//! Walks over the text of a path and says where it is wrong.

use crate::error::Error;

/// A place in the text of a path.
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

/// The largest index: RFC 9535, section 2.1.
const LARGEST: i64 = (1 << 53) - 1;

impl<'a> Cursor<'a> {
    /// The start of `text`.
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The character at this place.
    pub(crate) fn peek(&self) -> Option<char> {
        self.text.get(self.at..)?.chars().next()
    }

    /// The character at this place, which is then behind.
    pub(crate) fn advance(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Whether `c` stood here; it is then behind.
    pub(crate) fn take(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        if found {
            self.advance();
        }
        found
    }

    /// Goes over white space.
    pub(crate) fn skip_blank(&mut self) {
        while let Some(' ' | '\t' | '\n' | '\r') = self.peek() {
            self.advance();
        }
    }

    /// An index.
    pub(crate) fn integer(&mut self) -> Result<i64, Error> {
        let start = self.at;
        let negative = self.take('-');
        let zero = self.at;
        let mut value: i64 = 0;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            if zero != self.at && value == 0 {
                return Err(self.fault("an index has no leading zero"));
            }
            value = value.saturating_mul(10).saturating_add(digit.into());
            self.advance();
        }
        if zero == self.at {
            return Err(self.fault("a digit must stand here"));
        }
        if value > LARGEST {
            self.at = start;
            return Err(self.fault("the index is too large"));
        }
        if negative && value == 0 {
            self.at = zero;
            return Err(self.fault("an index is not `-0`"));
        }
        Ok(if negative { -value } else { value })
    }

    /// A name behind its opening `quote`, up to the closing one.
    pub(crate) fn quoted(&mut self, quote: char) -> Result<String, Error> {
        let mut name = String::new();
        while !self.take(quote) {
            match self.peek() {
                None => return Err(self.fault("the closing quote is missing")),
                Some(c) if c.is_ascii_control() => {
                    return Err(self.fault("a control character must be escaped"));
                }
                Some('\\') => {
                    self.advance();
                    name.push(self.escape(quote)?);
                }
                Some(c) => {
                    self.advance();
                    name.push(c);
                }
            }
        }
        Ok(name)
    }

    fn escape(&mut self, quote: char) -> Result<char, Error> {
        let c = match self.peek() {
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some(c) if c == quote || matches!(c, '/' | '\\') => c,
            Some('u') => {
                self.advance();
                return self.unicode();
            }
            _ => return Err(self.fault("no such escape")),
        };
        self.advance();
        Ok(c)
    }

    /// A character behind `\u`, written as one or two UTF-16 units.
    fn unicode(&mut self) -> Result<char, Error> {
        let mut units = vec![self.unit()?];
        if matches!(units.first(), Some(0xD800..=0xDBFF)) && self.take('\\') && self.take('u') {
            units.push(self.unit()?);
        }
        let mut chars = char::decode_utf16(units);
        match (chars.next(), chars.next()) {
            (Some(Ok(c)), None) => Ok(c),
            _ => Err(self.fault("half of a surrogate pair")),
        }
    }

    fn unit(&mut self) -> Result<u16, Error> {
        let mut unit = 0;
        for _ in 0..4 {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(16)) else {
                return Err(self.fault("a hexadecimal digit must stand here"));
            };
            self.advance();
            unit = unit * 16 + digit;
        }
        u16::try_from(unit).map_err(|_| self.fault("no such character"))
    }

    /// An error that shows the text, with a caret under this place.
    pub(crate) fn fault(&self, what: &str) -> Error {
        let before = self.text.get(..self.at).unwrap_or_default();
        let margin = " ".repeat(before.chars().count());
        Error::misconfigured(format!(
            "the path cannot be read: {what}\n    {}\n    {margin}^",
            self.text.replace(['\t', '\n', '\r'], " "),
        ))
    }
}
