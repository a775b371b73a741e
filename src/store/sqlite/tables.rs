//! The tables of the inbox, and the same again for the outbox.

use std::borrow::Cow;

/// Which of the two a queue's statements are about. They are written for the inbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tables {
    #[default]
    Inbox,
    Outbox,
}

impl Tables {
    /// How the names of the tables begin.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::Inbox => "idempotency_inbox",
            Self::Outbox => "idempotency_effects",
        }
    }

    /// A statement, for these tables.
    pub(super) fn named(self, sql: &str) -> Cow<'_, str> {
        match self {
            Self::Inbox => Cow::Borrowed(sql),
            Self::Outbox => sql.replace(Self::Inbox.prefix(), self.prefix()).into(),
        }
    }
}
