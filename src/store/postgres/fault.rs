//! What went wrong at the server, by SQLSTATE, and what helps.

use std::sync::Arc;

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use crate::error::{BoxError, Error};

/// A failed statement: what its calls are told, and what can be done before they are told.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) cure: Cure,
    pub(super) error: Error,
}

/// What helps against a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cure {
    /// The connection, or the server behind it, is not what it was: another connection.
    Reconnect,
    /// The connection's prepared statements are not its own: send the text each time.
    Unprepared,
    /// Others were in the way: the same again.
    Repeat,
    /// One call's value may have failed all calls of the statement: each call by itself.
    Apart,
    /// Nothing.
    None,
}

impl Fault {
    pub(super) fn of_statement(error: tokio_postgres::Error) -> Self {
        let Some(state) = error.code() else {
            let cure = if error.is_closed() || is_io(&error) {
                Cure::Reconnect
            } else {
                Cure::Apart
            };
            let what = Error::unavailable("the connection to the database broke");
            return Self::new(cure, what.because(error));
        };
        let (cure, what) = judge(state);
        Self::new(cure, what.because(error))
    }

    pub(super) fn of_connecting(error: PoolError) -> Self {
        let what = match &error {
            PoolError::Backend(inner) if inner.code().is_some_and(is_refusal) => {
                Error::misconfigured("the database refuses the connection")
            }
            PoolError::Backend(_)
            | PoolError::Timeout(_)
            | PoolError::Closed
            | PoolError::NoRuntimeSpecified
            | PoolError::PostCreateHook(_) => {
                Error::unavailable("there is no connection to the database")
            }
        };
        Self::new(Cure::None, what.because(error))
    }

    pub(super) fn corrupt(cause: impl Into<BoxError>) -> Self {
        let what = Error::corrupt("a row of the database cannot be read");
        Self::new(Cure::None, what.because(cause))
    }

    fn new(cure: Cure, error: Error) -> Self {
        Self { cure, error }
    }
}

/// The errors of the calls that one statement carried, each with the same cause.
pub(super) fn shared(error: Error, count: usize) -> impl Iterator<Item = Error> {
    let make: fn(&'static str) -> Error = if error.is_overdue() {
        Error::overdue
    } else if error.is_retryable() {
        Error::unavailable
    } else if error.is_corrupt() {
        Error::corrupt
    } else if error.is_misconfigured() {
        Error::misconfigured
    } else {
        Error::rejected
    };
    let cause = Arc::new(error);
    (0..count).map(move |_| {
        make("the statement that carried the call failed").because(Arc::clone(&cause))
    })
}

/// Classes and codes: <https://www.postgresql.org/docs/current/errcodes-appendix.html>
fn judge(state: &SqlState) -> (Cure, Error) {
    let class = state.code().get(..2).unwrap_or_default();
    if *state == SqlState::READ_ONLY_SQL_TRANSACTION {
        let what = Error::unavailable("the database is read-only");
        return (Cure::Reconnect, what);
    }
    if *state == SqlState::FEATURE_NOT_SUPPORTED {
        // "cached plan must not change result type": the functions were replaced meanwhile.
        let what = Error::unavailable("the connection's statements are out of date");
        return (Cure::Reconnect, what);
    }
    if [
        SqlState::INVALID_SQL_STATEMENT_NAME,
        SqlState::DUPLICATE_PSTATEMENT,
        SqlState::PROTOCOL_VIOLATION,
    ]
    .contains(state)
    {
        let what = Error::unavailable("a pooler lost the connection's prepared statements");
        return (Cure::Unprepared, what);
    }
    if [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
    ]
    .contains(state)
    {
        return (Cure::Repeat, Error::unavailable("rows are held by others"));
    }
    if [
        SqlState::UNDEFINED_TABLE,
        SqlState::UNDEFINED_FUNCTION,
        SqlState::INVALID_SCHEMA_NAME,
        SqlState::UNDEFINED_OBJECT,
    ]
    .contains(state)
    {
        let what = Error::misconfigured("the store's tables are not there: run `migrate`");
        return (Cure::None, what);
    }
    if is_refusal(state) {
        let what = Error::misconfigured("the database refuses the store");
        return (Cure::None, what);
    }
    match class {
        "08" => {
            let what = Error::unavailable("the connection to the database broke");
            (Cure::Reconnect, what)
        }
        "57" if *state != SqlState::QUERY_CANCELED => {
            let what = Error::unavailable("the database is stopping");
            (Cure::Reconnect, what)
        }
        "22" | "23" | "54" => {
            let what = Error::rejected("the database refuses a value");
            (Cure::Apart, what)
        }
        "XX" => (Cure::Apart, Error::corrupt("the database is damaged")),
        _ => (Cure::Apart, Error::unavailable("the database failed")),
    }
}

/// Wrong password, unknown database, no privilege.
fn is_refusal(state: &SqlState) -> bool {
    state.code().starts_with("28")
        || *state == SqlState::INVALID_CATALOG_NAME
        || *state == SqlState::INSUFFICIENT_PRIVILEGE
}

/// Whether the server says for certain that a commit was not applied. One that is stopping may
/// have applied it and not have told.
pub(super) fn is_certain(error: &tokio_postgres::Error) -> bool {
    let class = error.code().and_then(|state| state.code().get(..2));
    class.is_some_and(|class| !["08", "57", "58", "XX"].contains(&class))
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if error.is::<std::io::Error>() {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_helps_is_told_by_sqlstate() {
        let cases = [
            ("25006", Cure::Reconnect, true),
            ("57P01", Cure::Reconnect, true),
            ("57P02", Cure::Reconnect, true),
            ("57P03", Cure::Reconnect, true),
            ("08006", Cure::Reconnect, true),
            ("08P01", Cure::Unprepared, true),
            ("26000", Cure::Unprepared, true),
            ("42P05", Cure::Unprepared, true),
            ("40P01", Cure::Repeat, true),
            ("40001", Cure::Repeat, true),
            ("55P03", Cure::Repeat, true),
            ("57014", Cure::Apart, true),
            ("53100", Cure::Apart, true),
            ("22021", Cure::Apart, false),
            ("54000", Cure::Apart, false),
            ("42883", Cure::None, false),
            ("42501", Cure::None, false),
        ];
        for (code, cure, retryable) in cases {
            let (found, error) = judge(&SqlState::from_code(code));
            assert_eq!((found, error.is_retryable()), (cure, retryable), "{code}");
        }
    }
}
