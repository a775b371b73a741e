//! A store whose calls are measured, where measuring is asked for.

#[cfg(feature = "metrics")]
pub(crate) use crate::store::metered::{Watched, timed, watched};
#[cfg(not(feature = "metrics"))]
pub(crate) use crate::store::unmetered::{Watched, timed, watched};
