//! How a key stands, as the server told it, and the verdict that follows.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Row;

use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::record::Record;
use crate::store::contract::{Verdict, Wanted};
use crate::store::lease::{Lease, Token};
use crate::store::postgres::fault::Fault;
use crate::store::postgres::id::Id;
use crate::store::postgres::time;

/// Whether a key may be claimed again if its verdict is not clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    Early,
    Last,
}

/// One row, as a claim saw it.
pub(super) struct Stand {
    /// Whether the server says that the claim may take it over.
    pub(super) free: bool,
    token: Token,
    attempt: u32,
    first: Option<Fingerprint>,
    state: State,
}

enum State {
    Running {
        nonce: Id,
        remaining: Duration,
        /// How long ago the lease lapsed; `None` if it did not.
        lapsed: Option<Duration>,
    },
    Done(Result<Arc<Record>, Arc<Error>>),
}

impl Stand {
    /// Reads a row of `_claim` or `_begin`.
    pub(super) fn of(row: &Row) -> Result<(Id, Self), Fault> {
        let left: Option<i64> = row.try_get(6).map_err(Fault::corrupt)?;
        let stand = Self {
            free: row.try_get(2).map_err(Fault::corrupt)?,
            token: Token::new(row.try_get(4).map_err(Fault::corrupt)?),
            attempt: attempt(row.try_get(5).map_err(Fault::corrupt)?),
            first: row
                .try_get::<_, Option<&[u8]>>(7)
                .map_err(Fault::corrupt)?
                .and_then(Fingerprint::from_bytes),
            state: if row.try_get(1).map_err(Fault::corrupt)? {
                State::Done(record(row.try_get(8).map_err(Fault::corrupt)?).map_err(Arc::new))
            } else {
                State::Running {
                    nonce: row.try_get(3).map_err(Fault::corrupt)?,
                    remaining: time::from_server(left),
                    lapsed: left
                        .filter(|left| *left <= 0)
                        .map(|left| Duration::from_micros(left.unsigned_abs())),
                }
            },
        };
        Ok((row.try_get(0).map_err(Fault::corrupt)?, stand))
    }

    /// Notes that the attempt called `nonce` has taken the row over, as a row of `_take` says.
    pub(super) fn taken(
        &mut self,
        row: &Row,
        nonce: Id,
        asked: (&Wanted, Duration),
    ) -> Result<(), Fault> {
        let (wanted, remaining) = asked;
        self.free = false;
        self.token = Token::new(row.try_get(1).map_err(Fault::corrupt)?);
        self.attempt = attempt(row.try_get(2).map_err(Fault::corrupt)?);
        self.first = wanted.fingerprint.or(self.first);
        self.state = State::Running {
            nonce,
            remaining,
            lapsed: None,
        };
        Ok(())
    }

    /// Whether the attempt called `nonce` may take it over, if it leaves what has lapsed alone for
    /// `unknown_for`.
    pub(super) fn is_free_for(&self, nonce: Id, unknown_for: Option<Duration>) -> bool {
        self.free && self.unknown(nonce, unknown_for).is_none()
    }

    /// What is left of the time for which the attempt called `nonce` leaves it alone.
    fn unknown(&self, nonce: Id, unknown_for: Option<Duration>) -> Option<Duration> {
        match &self.state {
            State::Running {
                nonce: owner,
                lapsed: Some(lapsed),
                ..
            } if self.free && *owner != nonce => unknown_for?
                .checked_sub(*lapsed)
                .filter(|left| !left.is_zero()),
            State::Running { .. } | State::Done(_) => None,
        }
    }

    /// Whether the attempt called `nonce` runs it.
    pub(super) fn is_run_by(&self, nonce: Id) -> bool {
        match &self.state {
            State::Running { nonce: owner, .. } => *owner == nonce,
            State::Done(_) => false,
        }
    }

    /// The verdict for an attempt; `None` if the key is to be claimed again. `asked` is the nonce
    /// under which the statement asked for this key: of two attempts it can ask for one only.
    ///
    /// A lapsed run that could not be taken over is being ended or taken over by somebody: soon it
    /// is known by whom. With the last round it counts as running.
    pub(super) fn verdict(
        &self,
        wanted: &Wanted,
        (mine, asked): (Id, Id),
        (unknown_for, round): (Option<Duration>, Round),
    ) -> Result<Option<Verdict>, Error> {
        if let Some(remaining) = self.unknown(mine, unknown_for) {
            let unknown = Verdict::Unknown { remaining };
            return Ok(Some(self.other(wanted).unwrap_or(unknown)));
        }
        match &self.state {
            State::Running { nonce, .. } if *nonce == mine && (self.free || mine != asked) => {
                Ok(None)
            }
            State::Running { nonce, .. } if *nonce == mine => Ok(Some(Verdict::Run(Lease::new(
                wanted.key.clone(),
                self.token,
                self.attempt,
            )))),
            State::Running { .. } if self.free && round == Round::Early => Ok(None),
            State::Running { remaining, .. } => {
                Ok(Some(self.other(wanted).unwrap_or(Verdict::Running {
                    remaining: *remaining,
                })))
            }
            State::Done(record) => {
                match (self.other(wanted), record) {
                    (Some(other), _) => Ok(Some(other)),
                    (None, Ok(record)) => Ok(Some(Verdict::Replay(Arc::clone(record)))),
                    (None, Err(error)) => Err(Error::corrupt("the key's record cannot be read")
                        .because(Arc::clone(error))),
                }
            }
        }
    }

    fn other(&self, wanted: &Wanted) -> Option<Verdict> {
        let first = self.first?;
        first.differs_from(wanted.fingerprint.as_ref()?)?;
        Some(Verdict::Other { first })
    }
}

/// A stored record; a row without one was forgotten.
pub(super) fn record(bytes: Option<&[u8]>) -> Result<Arc<Record>, Error> {
    let record = match bytes {
        Some(bytes) => Record::from_bytes(bytes)?,
        None => Record::tombstone(),
    };
    Ok(Arc::new(record))
}

fn attempt(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
