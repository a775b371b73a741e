//! What the columns hold, and how it is read back.

use std::sync::Arc;

use rusqlite::Row;

use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::key::{Conversation, Key};
use crate::record::Record;
use crate::store::sqlite::clock::Moment;
use crate::store::sqlite::fault;

/// The first half of a digest: enough to tell keys apart, and half the tree.
pub(super) type Digest = [u8; 16];

/// The state of a row, with what belongs to it.
pub(super) enum State {
    Running { until: Moment },
    Done { record: Vec<u8> },
}

pub(super) fn digest(key: &Key) -> Digest {
    half(key.digest())
}

pub(super) fn conversation_digest(conversation: &Conversation) -> Digest {
    half(conversation.digest())
}

fn half(digest: [u8; 32]) -> Digest {
    let mut half = [0; 16];
    half.copy_from_slice(digest.split_at(16).0);
    half
}

/// Reads the columns `state, leased_until, record`, the first three.
pub(super) fn state(row: &Row<'_>) -> Result<State, Error> {
    let state = row.get_ref(0).map_err(fault::of_call)?;
    match state.as_str() {
        Ok("running") => Ok(State::Running {
            until: Moment::from_column(row.get(1).map_err(fault::of_call)?),
        }),
        Ok("done") => Ok(State::Done {
            record: row.get(2).map_err(fault::of_call)?,
        }),
        Ok(_) | Err(_) => Err(Error::corrupt("a row has an unknown state")),
    }
}

/// Reads the column `fingerprint`, the fourth.
pub(super) fn fingerprint(row: &Row<'_>) -> Result<Option<Fingerprint>, Error> {
    let bytes: Option<Vec<u8>> = row.get(3).map_err(fault::of_call)?;
    match bytes {
        None => Ok(None),
        Some(bytes) => match Fingerprint::from_bytes(&bytes) {
            Some(fingerprint) => Ok(Some(fingerprint)),
            None => Err(Error::corrupt("a fingerprint has a wrong length")),
        },
    }
}

/// Reads the column `record`.
pub(super) fn record(bytes: &[u8]) -> Result<Arc<Record>, Error> {
    Record::from_bytes(bytes).map(Arc::new)
}
