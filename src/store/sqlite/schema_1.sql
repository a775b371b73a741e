-- Version 1. Times are milliseconds since 1970, UTC.

-- One row per key. `key` is the first 16 bytes of the key's digest, so that the tree that every
-- claim searches stays small; what the key is made of stands beside it in the clear.
-- `state` is 'running' or 'done'.
CREATE TABLE idempotency_claims (
    number       INTEGER PRIMARY KEY,
    key          BLOB    NOT NULL UNIQUE,
    channel      TEXT    NOT NULL,
    scope        TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    conversation BLOB,
    fingerprint  BLOB,
    state        TEXT    NOT NULL,
    attempt      INTEGER NOT NULL,
    token        INTEGER NOT NULL,
    nonce        BLOB    NOT NULL,
    forgotten    INTEGER NOT NULL DEFAULT 0,
    claimed_at   INTEGER NOT NULL,
    leased_until INTEGER NOT NULL,
    done_at      INTEGER,
    idle         INTEGER,
    expires_at   INTEGER,
    record       BLOB
) STRICT;

CREATE INDEX idempotency_claims_by_conversation
    ON idempotency_claims (conversation) WHERE conversation IS NOT NULL;

CREATE INDEX idempotency_claims_by_expiry
    ON idempotency_claims (expires_at) WHERE expires_at IS NOT NULL;

-- The conversations that have rows. A new message moves `latest_at` alone, and thereby extends
-- all rows of its conversation.
CREATE TABLE idempotency_conversations (
    number       INTEGER PRIMARY KEY,
    conversation BLOB    NOT NULL UNIQUE,
    channel      TEXT    NOT NULL,
    scope        TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    latest_at    INTEGER NOT NULL
) STRICT;

-- The last token that was given. One row.
CREATE TABLE idempotency_sequence (
    number INTEGER PRIMARY KEY CHECK (number = 1),
    last   INTEGER NOT NULL
) STRICT;

INSERT INTO idempotency_sequence (number, last) VALUES (1, 0);

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

-- For people: the rows with readable times.
CREATE VIEW idempotency AS
SELECT claim.channel,
       claim.scope,
       claim.id,
       conversation.id AS conversation,
       claim.state,
       claim.attempt,
       claim.token,
       claim.forgotten,
       datetime(claim.claimed_at / 1000, 'unixepoch') AS claimed_at,
       datetime(claim.leased_until / 1000, 'unixepoch') AS leased_until,
       datetime(claim.done_at / 1000, 'unixepoch') AS done_at,
       datetime(claim.expires_at / 1000, 'unixepoch') AS expires_at,
       length(claim.record) AS record_bytes
FROM idempotency_claims AS claim
LEFT JOIN idempotency_conversations AS conversation USING (conversation);

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
