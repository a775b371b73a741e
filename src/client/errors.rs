//! Which errors are worth another attempt.

use std::any::Any;
use std::error::Error as StdError;

use http_body_util::LengthLimitError;

use crate::error::BoxError;

/// Says of an attempt that ended without an answer whether another may end otherwise.
///
/// Implemented by [`AnyError`], the default, and by closures.
pub trait RetryError<E> {
    /// Whether to try again.
    fn retry_error(&self, error: &E) -> bool;
}

/// Every error is worth another attempt; but not an answer over the limit of
/// [`CollectLayer`](super::CollectLayer), which would be as long again.
///
/// An error leaves open whether the message arrived, and with a key it is safe to ask again. One
/// that cannot be mended, such as a name that nobody has, costs the remaining attempts.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnyError;

impl<E: 'static> RetryError<E> for AnyError {
    fn retry_error(&self, error: &E) -> bool {
        let error: &dyn Any = error;
        error
            .downcast_ref::<BoxError>()
            .is_none_or(|error| !is_too_long(&**error))
    }
}

impl<E, F: Fn(&E) -> bool> RetryError<E> for F {
    fn retry_error(&self, error: &E) -> bool {
        self(error)
    }
}

fn is_too_long(error: &(dyn StdError + 'static)) -> bool {
    error.is::<LengthLimitError>() || error.source().is_some_and(is_too_long)
}
