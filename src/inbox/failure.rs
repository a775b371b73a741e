//! How a message goes on that was not handled.

use std::fmt;
use std::time::Duration;

/// A response extension by which the handler says how a message that it did not handle goes on.
///
/// It counts more than the status. Without it, any answer but a 2xx is tried again with growing
/// pauses, or after the answer's `Retry-After`, unless [`Inbox::gives_up_on`] names its status.
///
/// [`Inbox::gives_up_on`]: crate::inbox::Inbox::gives_up_on
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// Never again: the message is dead.
    Never,
    /// Again, this long from now. Counts as an attempt.
    Later(Duration),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("never again"),
            Self::Later(after) => write!(f, "again in {after:?}"),
        }
    }
}

/// So that a closure can fail with it.
impl std::error::Error for Failure {}
