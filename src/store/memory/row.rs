//! One key's row.

use std::sync::Arc;
use std::time::Duration;

use crate::fingerprint::Fingerprint;
use crate::key::Key;
use crate::record::{Keep, Record};
use crate::store::contract::{Claim, Nonce, Sight, Verdict, Wanted};
use crate::store::lease::{Lease, Standing, Token};

use crate::store::memory::life::Life;
use crate::store::memory::moment::Moment;

/// One key's row. The hash is kept so that a growing table does not visit the keys' texts.
pub(super) struct Row {
    pub(super) hash: u64,
    pub(super) key: Key,
    pub(super) token: Token,
    attempt: u32,
    fingerprint: Option<Fingerprint>,
    pub(super) life: Option<Arc<Life>>,
    payload: MayKeep,
    state: State,
}

/// Whether a record's payload may be kept.
#[derive(Clone, Copy)]
enum MayKeep {
    Payload,
    /// The conversation was forgotten; the mark stays with the key.
    Nothing,
}

enum State {
    Running { nonce: Nonce, until: Moment },
    Done { record: Arc<Record>, kept: Kept },
}

/// How long a done row is kept.
#[derive(Clone, Copy)]
enum Kept {
    Until(Moment),
    Idle { since: Moment, idle: Duration },
}

impl Row {
    /// The row of a new message.
    pub(super) fn begun(
        hash: u64,
        wanted: &Wanted,
        token: Token,
        life: Option<Arc<Life>>,
        (nonce, until): (Nonce, Moment),
    ) -> Self {
        Self {
            hash,
            key: wanted.key.clone(),
            token,
            attempt: 1,
            fingerprint: wanted.fingerprint,
            life,
            payload: MayKeep::Payload,
            state: State::Running { nonce, until },
        }
    }

    pub(super) fn lease(&self) -> Lease {
        Lease::new(self.key.clone(), self.token, self.attempt)
    }

    /// The answer to a claim of this row; `next` gives the token of a take-over.
    pub(super) fn answer(
        &mut self,
        wanted: &Wanted,
        claim: &Claim,
        now: Moment,
        next: impl FnOnce() -> Token,
    ) -> Verdict {
        match &mut self.state {
            State::Running { nonce, until } if *nonce == claim.nonce => {
                *until = now.plus(claim.lease);
                Verdict::Run(self.lease())
            }
            State::Running { nonce, until } if free_from(claim, *until) <= now => {
                *nonce = claim.nonce;
                *until = now.plus(claim.lease);
                self.token = next();
                self.attempt = self.attempt.saturating_add(1);
                self.fingerprint = wanted.fingerprint.or(self.fingerprint);
                Verdict::Run(self.lease())
            }
            State::Running { until, .. } => {
                let verdict = if *until <= now {
                    let remaining = now.until(free_from(claim, *until));
                    Verdict::Unknown { remaining }
                } else {
                    let remaining = now.until(*until);
                    Verdict::Running { remaining }
                };
                self.other(wanted).unwrap_or(verdict)
            }
            State::Done { record, .. } => {
                let replay = Verdict::Replay(Arc::clone(record));
                self.other(wanted).unwrap_or(replay)
            }
        }
    }

    fn other(&self, wanted: &Wanted) -> Option<Verdict> {
        let first = self.fingerprint?;
        first.differs_from(wanted.fingerprint.as_ref()?)?;
        Some(Verdict::Other { first })
    }

    pub(super) fn renew(&mut self, token: Token, until: Moment) -> Standing {
        match &mut self.state {
            State::Running { until: kept, .. } if self.token == token => {
                *kept = until;
                Standing::Renewed
            }
            State::Running { .. } | State::Done { .. } => Standing::Lost,
        }
    }

    /// Makes a running row done. The caller has matched the token.
    pub(super) fn record(&mut self, record: &Arc<Record>, keep: Keep, now: Moment) {
        let record = match self.payload {
            MayKeep::Payload => Arc::clone(record),
            MayKeep::Nothing => Arc::new(Record::tombstone()),
        };
        let kept = match keep {
            Keep::For(time) => Kept::Until(now.plus(time)),
            Keep::Conversation { idle } => Kept::Idle { since: now, idle },
        };
        self.state = State::Done { record, kept };
    }

    /// Takes the payload, or marks the row so that none is written.
    pub(super) fn forget(&mut self) {
        self.payload = MayKeep::Nothing;
        if let State::Done { record, .. } = &mut self.state {
            *record = Arc::new(Record::tombstone());
        }
    }

    pub(super) fn is_forgotten(&self) -> bool {
        matches!(self.payload, MayKeep::Nothing)
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    pub(super) fn sight(&self, now: Moment) -> Sight {
        match &self.state {
            State::Running { until, .. } => Sight::Running {
                remaining: now.until(*until),
            },
            State::Done { record, .. } => Sight::Done(Arc::clone(record)),
        }
    }

    /// When a done row's retention ends, as far as is known now. A running row has no such moment.
    pub(super) fn ends(&self) -> Option<Moment> {
        match &self.state {
            State::Running { .. } => None,
            State::Done { kept, .. } => Some(match kept {
                Kept::Until(at) => *at,
                Kept::Idle { since, idle } => {
                    let latest = self.life.as_ref().map_or(*since, |life| life.latest());
                    latest.max(*since).plus(*idle)
                }
            }),
        }
    }

    pub(super) fn has_ended(&self, now: Moment) -> bool {
        self.ends().is_some_and(|end| end <= now)
    }

    pub(super) fn is_of(&self, life: &Arc<Life>) -> bool {
        self.life
            .as_ref()
            .is_some_and(|mine| Arc::ptr_eq(mine, life))
    }

    /// How many bytes the row's record holds.
    pub(super) fn size(&self) -> usize {
        match &self.state {
            State::Running { .. } => 0,
            State::Done { record, .. } => record.size(),
        }
    }
}

/// When a claim may take over what lapses at `until`.
fn free_from(claim: &Claim, until: Moment) -> Moment {
    until.plus(claim.unknown_for.unwrap_or_default())
}
