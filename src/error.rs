//! The crate's one error type: what kind of failure, and the cause below it.

use std::borrow::Cow;
use std::convert::Infallible;
use std::error::Error as StdError;
use std::fmt;

/// Any error that can be carried as a cause.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// A failure of a store, or of building something from wrong input.
///
/// `Display` says what failed at this level only; [`source`](StdError::source) has the rest.
/// Neither holds secrets, keys or message texts.
pub struct Error {
    kind: Kind,
    what: Cow<'static, str>,
    cause: Option<BoxError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unavailable,
    Overdue,
    Corrupt,
    Rejected,
    Misconfigured,
}

impl Error {
    /// The store cannot be reached, is full or is stopping. The same call may succeed later.
    pub fn unavailable(what: impl Into<Cow<'static, str>>) -> Self {
        Self::of(Kind::Unavailable, what)
    }

    /// The store did not answer within its limit; whether the call was applied is unknown.
    pub fn overdue(what: impl Into<Cow<'static, str>>) -> Self {
        Self::of(Kind::Overdue, what)
    }

    /// What the store holds cannot be read, such as a record written by a later version.
    pub fn corrupt(what: impl Into<Cow<'static, str>>) -> Self {
        Self::of(Kind::Corrupt, what)
    }

    /// The store refuses this very value; sending it again gives the same answer.
    pub fn rejected(what: impl Into<Cow<'static, str>>) -> Self {
        Self::of(Kind::Rejected, what)
    }

    /// Something was built from input that cannot work: a broken path, a bad URL.
    pub fn misconfigured(what: impl Into<Cow<'static, str>>) -> Self {
        Self::of(Kind::Misconfigured, what)
    }

    /// Adds the error that caused this one.
    #[must_use]
    pub fn because(mut self, cause: impl Into<BoxError>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// Whether the same call may succeed later: the store was unreachable, full or slow.
    pub fn is_retryable(&self) -> bool {
        matches!(self.kind, Kind::Unavailable | Kind::Overdue)
    }

    /// Whether a call ran into its time limit.
    pub fn is_overdue(&self) -> bool {
        self.kind == Kind::Overdue
    }

    /// Whether stored data could not be read.
    pub fn is_corrupt(&self) -> bool {
        self.kind == Kind::Corrupt
    }

    /// Whether the error stems from how something was built, not from a request.
    pub fn is_misconfigured(&self) -> bool {
        self.kind == Kind::Misconfigured
    }

    fn of(kind: Kind, what: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            what: what.into(),
            cause: None,
        }
    }
}

impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.kind)
            .field("what", &self.what)
            .field("cause", &self.cause)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.cause {
            Some(cause) => Some(&**cause),
            None => None,
        }
    }
}
