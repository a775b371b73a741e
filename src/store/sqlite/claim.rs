//! Claims: the statement that grants, and the look at why it did not.

use std::time::Duration;

use rusqlite::{Row, named_params, params};

use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::key::{Conversation, Key};
use crate::store::contract::{Claim, Nonce, Verdict, Wanted};
use crate::store::lease::{Lease, Token};
use crate::store::sqlite::batch::Batch;
use crate::store::sqlite::clock::Moment;
use crate::store::sqlite::conversation;
use crate::store::sqlite::job::{Abandoned, Work};
use crate::store::sqlite::kept;
use crate::store::sqlite::sweep;

/// A claim of all keys of one request.
pub(super) struct ClaimWork {
    nonce: Nonce,
    lease: Duration,
    unknown_for: Duration,
    asked: Vec<Asked>,
}

/// One key, with its digests made on the caller's thread.
struct Asked {
    key: Key,
    digest: kept::Digest,
    conversation: Option<(Conversation, kept::Digest)>,
    fingerprint: Option<Fingerprint>,
}

/// What the writer found for one key; the caller makes it a verdict.
pub(super) enum Found {
    Granted { token: Token, attempt: u32 },
    Running { remaining: Duration },
    Unknown { remaining: Duration },
    Other { first: Fingerprint },
    Done { record: Vec<u8> },
}

impl ClaimWork {
    pub(super) fn new(claim: &Claim) -> Self {
        Self {
            nonce: claim.nonce,
            lease: claim.lease,
            unknown_for: claim.unknown_for.unwrap_or_default(),
            asked: claim.wanted.iter().map(Asked::new).collect(),
        }
    }
}

impl Work for ClaimWork {
    type Answer = Vec<Found>;

    const ABANDONED: Abandoned = Abandoned::Drop;

    fn perform(&self, batch: &mut Batch<'_>) -> Result<Vec<Found>, Error> {
        let now = Moment::now();
        let claim = |asked| self.claim(batch, asked, now);
        self.asked.iter().map(claim).collect()
    }
}

impl ClaimWork {
    fn claim(&self, batch: &mut Batch<'_>, asked: &Asked, now: Moment) -> Result<Found, Error> {
        let offered = batch.next_token()?;
        let granted = batch.row(
            GRANT,
            named_params! {
                ":key": asked.digest,
                ":channel": asked.key.channel(),
                ":scope": asked.key.scope(),
                ":id": asked.key.id(),
                ":conversation": asked.conversation.as_ref().map(|(_, digest)| digest),
                ":fingerprint": asked.fingerprint.as_ref().map(Fingerprint::as_bytes),
                ":token": offered.number(),
                ":nonce": self.nonce.as_bytes(),
                ":now": now.column(),
                ":until": now.plus(self.lease).column(),
                ":free": now.minus(self.unknown_for).column(),
            },
            |row| Ok((Token::new(row.get(0)?), row.get(1)?)),
        )?;
        let Some((token, attempt)) = granted else {
            return match self.look(batch, asked, now)? {
                Some(found) => Ok(found),
                None if sweep::end(batch, &asked.digest, now)? => self.claim(batch, asked, now),
                None => self.read_row(batch, asked, now),
            };
        };
        if token == offered {
            batch.spend(token);
            if let (1, Some((conversation, digest))) = (attempt, &asked.conversation) {
                conversation::open(batch, conversation, digest, now)?;
            }
        }
        Ok(Found::Granted { token, attempt })
    }

    /// The row that stood in the way, unless its retention may have ended.
    fn look(&self, batch: &Batch<'_>, asked: &Asked, now: Moment) -> Result<Option<Found>, Error> {
        let ends = batch.row(LOOK, params![asked.digest, now.column()], |row| {
            if row.get(4)? {
                return Ok(None);
            }
            Ok(Some(self.read(row, asked, now)))
        })?;
        ends.ok_or_else(gone)?.transpose()
    }

    fn read_row(&self, batch: &Batch<'_>, asked: &Asked, now: Moment) -> Result<Found, Error> {
        let read = |row: &Row<'_>| Ok(self.read(row, asked, now));
        let found = batch.row(LOOK, params![asked.digest, now.column()], read)?;
        found.ok_or_else(gone)?
    }

    fn read(&self, row: &Row<'_>, asked: &Asked, now: Moment) -> Result<Found, Error> {
        if let (Some(first), Some(this)) = (kept::fingerprint(row)?, &asked.fingerprint)
            && first.differs_from(this).is_some()
        {
            return Ok(Found::Other { first });
        }
        Ok(match kept::state(row)? {
            kept::State::Running { until } if until <= now => Found::Unknown {
                remaining: now.until(until.plus(self.unknown_for)),
            },
            kept::State::Running { until } => Found::Running {
                remaining: now.until(until),
            },
            kept::State::Done { record } => Found::Done { record },
        })
    }
}

impl Asked {
    fn new(wanted: &Wanted) -> Self {
        let conversation = wanted.conversation.as_ref();
        Self {
            key: wanted.key.clone(),
            digest: kept::digest(&wanted.key),
            conversation: conversation.map(|c| (c.clone(), kept::conversation_digest(c))),
            fingerprint: wanted.fingerprint,
        }
    }
}

impl Found {
    /// The answer for `key`, whose record is read here and not on the writer's thread.
    pub(super) fn verdict(self, key: &Key) -> Result<Verdict, Error> {
        Ok(match self {
            Self::Granted { token, attempt } => {
                Verdict::Run(Lease::new(key.clone(), token, attempt))
            }
            Self::Running { remaining } => Verdict::Running { remaining },
            Self::Unknown { remaining } => Verdict::Unknown { remaining },
            Self::Other { first } => Verdict::Other { first },
            Self::Done { record } => Verdict::Replay(kept::record(&record)?),
        })
    }
}

/// Inserts the row, or takes it over if it is running and lapsed long enough, or finds it running under the
/// same nonce and gives it once more. No row comes back where another holds it or it is done.
const GRANT: &str = "
INSERT INTO idempotency_claims AS mine
    (key, channel, scope, id, conversation, fingerprint,
     state, attempt, token, nonce, claimed_at, leased_until)
VALUES
    (:key, :channel, :scope, :id, :conversation, :fingerprint,
     'running', 1, :token, :nonce, :now, :until)
ON CONFLICT (key) DO UPDATE SET
    token        = iif(mine.nonce = :nonce, mine.token, :token),
    attempt      = iif(mine.nonce = :nonce, mine.attempt, mine.attempt + 1),
    fingerprint  = iif(mine.nonce = :nonce, mine.fingerprint, coalesce(:fingerprint, mine.fingerprint)),
    claimed_at   = iif(mine.nonce = :nonce, mine.claimed_at, :now),
    nonce        = :nonce,
    leased_until = :until
WHERE mine.state = 'running' AND (mine.nonce = :nonce OR mine.leased_until <= :free)
RETURNING token, attempt";

const LOOK: &str = "
SELECT state, leased_until, record, fingerprint, state = 'done' AND expires_at <= ?2
FROM idempotency_claims WHERE key = ?1";

/// It cannot be: nobody else writes while the transaction is open.
fn gone() -> Error {
    Error::unavailable("the key's row went away within the transaction")
}
