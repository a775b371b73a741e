-- What the store keeps for an inbox, a part of version 1; once more for the outbox, as
-- `idempotency_effects_…`.

-- One row per key that an inbox has accepted. `stage` is 'waiting', 'done' or 'dead'. `line` is the
-- conversation, or the key itself where there is none.
CREATE TABLE idempotency_inbox_keys (
    number       INTEGER PRIMARY KEY,
    key          BLOB    NOT NULL UNIQUE,
    channel      TEXT    NOT NULL,
    scope        TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    line         BLOB    NOT NULL,
    conversation BLOB,
    stage        TEXT    NOT NULL,
    accepted_at  INTEGER NOT NULL,
    idle         INTEGER,
    expires_at   INTEGER NOT NULL,
    -- The request of a message that is done, where it is kept.
    raw          BLOB
) STRICT;

CREATE INDEX idempotency_inbox_keys_by_expiry
    ON idempotency_inbox_keys (expires_at) WHERE stage = 'done';

CREATE INDEX idempotency_inbox_keys_by_conversation
    ON idempotency_inbox_keys (conversation) WHERE conversation IS NOT NULL;

-- The messages that wait or are being handled; a place is never given twice. `due_at` is set for
-- one that failed and that others may pass meanwhile.
CREATE TABLE idempotency_inbox_messages (
    place       INTEGER PRIMARY KEY AUTOINCREMENT,
    line        BLOB    NOT NULL,
    key         BLOB    NOT NULL,
    failures    INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    due_at      INTEGER,
    fault       TEXT,
    raw         BLOB    NOT NULL
) STRICT;

CREATE INDEX idempotency_inbox_messages_by_line ON idempotency_inbox_messages (line, place);

-- The lines that hold messages, or whose turn somebody has. `token` is the turn's, if there is one;
-- `due_at` is when the turn may be taken: at once, at a retry, or when its lease lapses. `held` says
-- that everybody waits for the first message. `lapses` counts since a message last ended.
CREATE TABLE idempotency_inbox_lines (
    line   BLOB    NOT NULL PRIMARY KEY,
    due_at INTEGER NOT NULL,
    token  INTEGER,
    held   INTEGER NOT NULL,
    lapses INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_inbox_lines_by_due ON idempotency_inbox_lines (due_at);

-- Messages that will not be handled unless they are redriven; a death is never given twice.
CREATE TABLE idempotency_inbox_dead (
    death       INTEGER PRIMARY KEY AUTOINCREMENT,
    line        BLOB    NOT NULL,
    key         BLOB    NOT NULL,
    attempts    INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    died_at     INTEGER NOT NULL,
    fault       TEXT    NOT NULL,
    raw         BLOB    NOT NULL
) STRICT;

CREATE INDEX idempotency_inbox_dead_by_line ON idempotency_inbox_dead (line);

CREATE VIEW idempotency_inbox AS
SELECT known.channel,
       known.scope,
       known.id,
       conversation.id AS conversation,
       known.stage,
       message.place,
       message.failures,
       coalesce(message.fault, dead.fault) AS fault,
       dead.death,
       line.token,
       datetime(known.accepted_at / 1000, 'unixepoch') AS accepted_at,
       datetime(line.due_at / 1000, 'unixepoch') AS due_at,
       datetime(known.expires_at / 1000, 'unixepoch') AS expires_at,
       length(coalesce(message.raw, dead.raw, known.raw)) AS raw_bytes
FROM idempotency_inbox_keys AS known
LEFT JOIN idempotency_conversations AS conversation USING (conversation)
LEFT JOIN idempotency_inbox_messages AS message
       ON message.line = known.line AND message.key = known.key
LEFT JOIN idempotency_inbox_lines AS line ON line.line = message.line
LEFT JOIN idempotency_inbox_dead AS dead ON dead.line = known.line AND dead.key = known.key;
