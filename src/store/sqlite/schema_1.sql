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
