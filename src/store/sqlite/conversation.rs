//! Conversations: their life, and forgetting them.

use rusqlite::params;

use crate::error::Error;
use crate::key::Conversation;
use crate::record::Record;
use crate::store::sqlite::batch::Batch;
use crate::store::sqlite::clock::Moment;
use crate::store::sqlite::inbox::line;
use crate::store::sqlite::job::{Abandoned, Work};
use crate::store::sqlite::kept;
use crate::store::sqlite::tables::Tables;

/// A new message came: the conversation lives on from now.
pub(super) fn open(
    batch: &Batch<'_>,
    conversation: &Conversation,
    digest: &kept::Digest,
    now: Moment,
) -> Result<(), Error> {
    let (channel, scope, id) = (
        conversation.channel(),
        conversation.scope(),
        conversation.id(),
    );
    batch.execute(OPEN, params![digest, channel, scope, id, now.column()])?;
    Ok(())
}

/// A row of the conversation was removed: with its last row the conversation goes.
pub(super) fn leave(batch: &Batch<'_>, digest: &[u8]) -> Result<(), Error> {
    let before = batch.turn_to(Tables::Inbox);
    let left = batch.execute(LEAVE, [digest]);
    batch.turn_to(before);
    left.map(drop)
}

/// When the conversation had its last new message, or was closed.
pub(super) fn latest(batch: &Batch<'_>, digest: &[u8]) -> Result<Option<Moment>, Error> {
    batch.row(LATEST, [digest], |row| row.get(0).map(Moment::from_column))
}

/// Counts a conversation's idle time from now.
pub(super) struct CloseWork {
    digest: kept::Digest,
}

/// Takes the payloads of a conversation, and marks its running rows.
pub(super) struct ForgetWork {
    digest: kept::Digest,
    tombstone: Vec<u8>,
}

impl CloseWork {
    pub(super) fn new(conversation: &Conversation) -> Self {
        Self {
            digest: kept::conversation_digest(conversation),
        }
    }
}

impl ForgetWork {
    pub(super) fn new(conversation: &Conversation) -> Result<Self, Error> {
        Ok(Self {
            digest: kept::conversation_digest(conversation),
            tombstone: Record::tombstone().to_bytes()?,
        })
    }
}

impl Work for CloseWork {
    type Answer = ();

    const ABANDONED: Abandoned = Abandoned::Finish;

    fn perform(&self, batch: &mut Batch<'_>) -> Result<(), Error> {
        batch.execute(CLOSE, params![self.digest, Moment::now().column()])?;
        Ok(())
    }
}

impl Work for ForgetWork {
    type Answer = u64;

    const ABANDONED: Abandoned = Abandoned::Finish;

    /// The payloads' bytes are overwritten with zeros, which costs further writing.
    fn perform(&self, batch: &mut Batch<'_>) -> Result<u64, Error> {
        batch.row("PRAGMA secure_delete = ON", [], |_| Ok(()))?;
        let forgotten = self.forget(batch);
        batch.row("PRAGMA secure_delete = FAST", [], |_| Ok(()))?;
        Ok(u64::try_from(forgotten?).unwrap_or(u64::MAX))
    }
}

impl ForgetWork {
    fn forget(&self, batch: &Batch<'_>) -> Result<usize, Error> {
        let records = batch.execute(FORGET, params![self.digest, self.tombstone])?;
        let messages = line::forget(batch, &self.digest)?;
        let before = batch.turn_to(Tables::Outbox);
        let effects = line::forget(batch, &self.digest);
        batch.turn_to(before);
        Ok(records + messages + effects?)
    }
}

const OPEN: &str = "
INSERT INTO idempotency_conversations (conversation, channel, scope, id, latest_at)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (conversation) DO UPDATE SET latest_at = max(latest_at, excluded.latest_at)";

const CLOSE: &str = "
UPDATE idempotency_conversations SET latest_at = max(latest_at, ?2) WHERE conversation = ?1";

const LATEST: &str = "
SELECT latest_at FROM idempotency_conversations WHERE conversation = ?1";

const LEAVE: &str = "
DELETE FROM idempotency_conversations
WHERE conversation = ?1
  AND NOT EXISTS (SELECT 1 FROM idempotency_claims WHERE conversation = ?1)
  AND NOT EXISTS (SELECT 1 FROM idempotency_inbox_keys WHERE conversation = ?1)
  AND NOT EXISTS (SELECT 1 FROM idempotency_effects_keys WHERE conversation = ?1)";

const FORGET: &str = "
UPDATE idempotency_claims
SET forgotten = 1, record = iif(state = 'done', ?2, record)
WHERE conversation = ?1";
