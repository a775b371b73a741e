//! Starts the store's threads: they gather calls and sweep, and end with the last handle.

use std::thread::Builder;

use crate::error::Error;

/// Starts a thread called `name`.
pub(crate) fn start(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let started = Builder::new().name(name.to_owned()).spawn(run);
    started
        .map(drop)
        .map_err(|e| Error::unavailable("a thread could not be started").because(e))
}
