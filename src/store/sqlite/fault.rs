//! SQLite's errors, by code, as the crate's.

use std::sync::Arc;

use rusqlite::ffi;

use crate::error::Error;

/// A failure that all calls of a transaction share.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    what: &'static str,
    cause: Option<Arc<rusqlite::Error>>,
}

impl Fault {
    pub(super) fn new(cause: rusqlite::Error) -> Self {
        let what = match code(&cause) {
            ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => BUSY,
            ffi::SQLITE_FULL => FULL,
            _ => "the transaction that carried the call failed",
        };
        Self {
            what,
            cause: Some(Arc::new(cause)),
        }
    }

    /// Another call of the transaction met a failure after which SQLite rolled everything back.
    pub(super) fn lost() -> Self {
        Self {
            what: "the transaction that carried the call was rolled back",
            cause: None,
        }
    }

    /// What one of the calls is told. It may be asked again: it never was at fault itself.
    pub(super) fn error(&self) -> Error {
        let error = Error::unavailable(self.what);
        match &self.cause {
            Some(cause) => error.because(Arc::clone(cause)),
            None => error,
        }
    }
}

/// A statement of one call failed.
pub(super) fn of_call(cause: rusqlite::Error) -> Error {
    let error = match code(&cause) {
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => Error::unavailable(BUSY),
        ffi::SQLITE_FULL => Error::unavailable(FULL),
        ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB => Error::corrupt(DAMAGED),
        ffi::SQLITE_TOOBIG | ffi::SQLITE_CONSTRAINT | ffi::SQLITE_MISMATCH | ffi::SQLITE_RANGE => {
            Error::rejected("SQLite refuses a value of the call")
        }
        UNREADABLE => Error::corrupt("a column holds what the store never writes"),
        _ => Error::unavailable("SQLite could not carry out the call"),
    };
    error.because(cause)
}

/// The file could not be opened.
pub(super) fn of_open(cause: rusqlite::Error) -> Error {
    let error = match code(&cause) {
        ffi::SQLITE_NOTADB => Error::misconfigured("the file is no SQLite database"),
        ffi::SQLITE_CANTOPEN | ffi::SQLITE_PERM | ffi::SQLITE_AUTH => Error::misconfigured(
            "the database file cannot be opened: is the folder there, and may it be written?",
        ),
        ffi::SQLITE_READONLY => Error::misconfigured(READ_ONLY),
        ffi::SQLITE_ERROR => Error::misconfigured("the file's tables are not the store's"),
        ffi::SQLITE_CORRUPT => Error::corrupt(DAMAGED),
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => Error::unavailable(BUSY),
        ffi::SQLITE_FULL => Error::unavailable(FULL),
        _ => Error::unavailable("SQLite could not open the file"),
    };
    error.because(cause)
}

pub(super) const READ_ONLY: &str = "the database file is read-only";
const BUSY: &str = "the database file is in use by another connection";
const FULL: &str = "the disk, or the database file, is full";
const DAMAGED: &str = "the database file is damaged";

/// No code of SQLite: a column's value has another type than it was written with.
const UNREADABLE: i32 = -1;

/// The primary result code.
fn code(error: &rusqlite::Error) -> i32 {
    match error.sqlite_error() {
        Some(failure) => failure.extended_code & 0xff,
        None => UNREADABLE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
    }

    #[test]
    fn what_may_pass_is_retryable_and_a_bad_value_is_not() {
        for code in [
            ffi::SQLITE_BUSY,
            ffi::SQLITE_BUSY_SNAPSHOT,
            ffi::SQLITE_BUSY_RECOVERY,
            ffi::SQLITE_LOCKED_SHAREDCACHE,
            ffi::SQLITE_FULL,
            ffi::SQLITE_IOERR_FSYNC,
            ffi::SQLITE_NOMEM,
        ] {
            assert!(of_call(failure(code)).is_retryable(), "{code}");
            assert!(Fault::new(failure(code)).error().is_retryable(), "{code}");
        }
        assert!(!of_call(failure(ffi::SQLITE_TOOBIG)).is_retryable());
        assert!(of_call(failure(ffi::SQLITE_CORRUPT_INDEX)).is_corrupt());
        assert!(of_open(failure(ffi::SQLITE_NOTADB)).is_misconfigured());
    }
}
