//! Sixteen bytes, as PostgreSQL's `uuid`.

use std::error::Error as StdError;

use bytes::{BufMut, BytesMut};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

use crate::key::{Conversation, Key};
use crate::store::contract::Nonce;
use crate::store::queue::arrival::Line;

/// The name of a row, a conversation or an attempt. Ordered as the server orders `uuid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Id([u8; 16]);

impl Id {
    pub(super) fn of_key(key: &Key) -> Self {
        Self::first(key.digest())
    }

    pub(super) fn of_conversation(conversation: &Conversation) -> Self {
        Self::first(conversation.digest())
    }

    pub(super) fn of_nonce(nonce: Nonce) -> Self {
        Self(*nonce.as_bytes())
    }

    pub(super) fn of_line(line: Line) -> Self {
        Self(*line.as_bytes())
    }

    pub(super) fn line(self) -> Line {
        Line::from_bytes(self.0)
    }

    /// A number that is spread evenly over the names, from 0 to 255.
    pub(super) fn spread(self) -> u8 {
        self.0.last().copied().unwrap_or_default()
    }

    fn first(digest: [u8; 32]) -> Self {
        let mut id = [0; 16];
        for (to, from) in id.iter_mut().zip(digest) {
            *to = from;
        }
        Self(id)
    }
}

impl ToSql for Id {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        out.put_slice(&self.0);
        Ok(IsNull::No)
    }

    accepts!(UUID);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Id {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(raw.try_into()?))
    }

    accepts!(UUID);
}
