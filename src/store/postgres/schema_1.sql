-- What PostgresStore keeps, version 1. PostgreSQL 13 or later, in a database whose encoding is UTF8.
--
-- PostgresStore::migrate runs this once, in one transaction. It can be put into another migration
-- tool as it stands; PostgresStore::schema gives it for another table or schema.
--
-- All writes go through the functions below, one call per batch:
-- * a function plans its statements by itself and keeps the plans, so that a connection pooler in
--   transaction mode serves as well as a session;
-- * enable_seqscan = off: a plan that is made while the table is small would read it from end to
--   end, and be kept while it grows;
-- * plan_cache_mode = force_generic_plan: the plans have no choice, so they are made once;
-- * jit = off: a penalty that no plan can avoid would look expensive enough to be compiled;
-- * each statement of a function sees what was committed before it began (READ COMMITTED).

CREATE TABLE IF NOT EXISTS idempotency_version (
    version integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO idempotency_version (version) VALUES (1);

-- One sequence for the whole store: a token is never given twice, also not after its row is gone.
-- No CACHE: a session that kept numbers back would give out lower ones later.
CREATE SEQUENCE idempotency_token;

-- One row per message.
--
-- `key` and `conversation_key` are the first 16 bytes of a SHA-256 over channel, scope and id, each
-- behind its length. The texts are for reading; a NUL, which text cannot hold, is written `␀`.
-- No index mentions `state`, `lease_until` or `done_at`, and pages are left with room: so the end
-- of a run rewrites the row where it stands and touches no index.
CREATE TABLE idempotency (
    key uuid PRIMARY KEY,
    token bigint NOT NULL,
    claimed_at timestamptz NOT NULL,
    lease_until timestamptz,
    done_at timestamptz,
    attempt integer NOT NULL,
    forgotten boolean NOT NULL,
    nonce uuid,
    conversation_key uuid,
    state text NOT NULL,
    channel text NOT NULL,
    scope text NOT NULL,
    id text NOT NULL,
    conversation text,
    fingerprint bytea
) WITH (fillfactor = 60);
CREATE INDEX ON idempotency (conversation_key) WHERE conversation_key IS NOT NULL;

-- One row per done message, inserted when its run ends. `record` is NULL once it is forgotten.
-- `idle` in milliseconds: the row lives as long as its conversation. `expires` without `idle` is
-- the end of retention; with it, the earliest end.
CREATE TABLE idempotency_record (
    token bigint PRIMARY KEY,
    key uuid NOT NULL,
    expires timestamptz NOT NULL,
    idle bigint,
    record bytea
);
CREATE INDEX ON idempotency_record (expires) WHERE idle IS NULL;

-- One row per conversation that has messages. A new message writes `heard_at`, and so extends all
-- rows of the conversation without touching them. `due` is when the sweeper looks at it next.
CREATE TABLE idempotency_conversation (
    key uuid PRIMARY KEY,
    heard_at timestamptz NOT NULL,
    due timestamptz NOT NULL,
    channel text NOT NULL,
    scope text NOT NULL,
    id text NOT NULL
) WITH (fillfactor = 60);
CREATE INDEX ON idempotency_conversation (due);

-- Makes a row of each key that has none, and answers how every key stands. `free` marks rows that
-- idempotency_take may take over. A key that is not in the answer was removed at this very moment:
-- to be claimed again. Of two answers for a key the later one counts. The caller sorts the keys,
-- each once.
CREATE FUNCTION idempotency_claim(
    keys uuid[], nonces uuid[], leases bigint[], channels text[], scopes text[], ids text[],
    fingerprints bytea[], conversation_keys uuid[], conversations text[]
) RETURNS TABLE (
    key uuid, done boolean, free boolean, nonce uuid, token bigint, attempt integer,
    remaining bigint, fingerprint bytea, record bytea
) LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    seen bigint := 0;
    answered bigint;
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'local', true);
    END IF;
    IF cardinality(keys) = 1 THEN
        RETURN QUERY SELECT t.key, t.state = 'done',
            CASE t.state WHEN 'done' THEN coalesce(r.expires <= clock_timestamp(), false)
            ELSE t.lease_until <= clock_timestamp() OR t.nonce = nonces[1] END,
            t.nonce, t.token, t.attempt,
            (extract(epoch FROM t.lease_until - clock_timestamp()) * 1000000)::bigint,
            t.fingerprint, r.record
        FROM idempotency t LEFT JOIN idempotency_record r ON r.token = t.token
        WHERE t.key = keys[1];
        IF FOUND THEN
            RETURN;
        END IF;
        RETURN QUERY INSERT INTO idempotency AS t (
            key, token, claimed_at, lease_until, attempt, forgotten, nonce,
            conversation_key, state, channel, scope, id, conversation, fingerprint)
        VALUES (keys[1], nextval('idempotency_token'), clock_timestamp(),
            clock_timestamp() + leases[1] * interval '1 ms', 1, false, nonces[1],
            conversation_keys[1], 'running', channels[1], scopes[1], ids[1], conversations[1],
            fingerprints[1])
        ON CONFLICT (key) DO NOTHING
        RETURNING t.key, false, false, t.nonce, t.token, t.attempt, 0::bigint, t.fingerprint,
            NULL::bytea;
    ELSE
        RETURN QUERY SELECT t.key, t.state = 'done',
            CASE t.state WHEN 'done' THEN coalesce(r.expires <= clock_timestamp(), false)
            ELSE t.lease_until <= clock_timestamp() OR t.nonce = a.nonce END,
            t.nonce, t.token, t.attempt,
            (extract(epoch FROM t.lease_until - clock_timestamp()) * 1000000)::bigint,
            t.fingerprint, r.record
        FROM unnest(keys, nonces) AS a (key, nonce)
        CROSS JOIN LATERAL (SELECT * FROM idempotency t WHERE t.key = a.key LIMIT 1) t
        LEFT JOIN LATERAL (
            SELECT * FROM idempotency_record r WHERE r.token = t.token LIMIT 1) r ON true;
        GET DIAGNOSTICS seen = ROW_COUNT;
        IF seen = cardinality(keys) THEN
            RETURN;
        END IF;
        RETURN QUERY INSERT INTO idempotency AS t (
            key, token, claimed_at, lease_until, attempt, forgotten, nonce,
            conversation_key, state, channel, scope, id, conversation, fingerprint)
        SELECT a.key, nextval('idempotency_token'), clock_timestamp(),
            clock_timestamp() + a.lease * interval '1 ms', 1, false, a.nonce,
            a.conversation_key, 'running', a.channel, a.scope, a.id, a.conversation,
            a.fingerprint
        FROM unnest(keys, nonces, leases, channels, scopes, ids, fingerprints,
            conversation_keys, conversations) AS a (
            key, nonce, lease, channel, scope, id, fingerprint, conversation_key, conversation)
        ON CONFLICT (key) DO NOTHING
        RETURNING t.key, false, false, t.nonce, t.token, t.attempt, 0::bigint, t.fingerprint,
            NULL::bytea;
    END IF;
    GET DIAGNOSTICS answered = ROW_COUNT;
    IF seen + answered < cardinality(keys) THEN
        -- Another made a row of the same key while this statement ran; a later one sees it.
        RETURN QUERY SELECT t.key, t.state = 'done',
            CASE t.state WHEN 'done' THEN coalesce(r.expires <= clock_timestamp(), false)
            ELSE t.lease_until <= clock_timestamp() OR t.nonce = a.nonce END,
            t.nonce, t.token, t.attempt,
            (extract(epoch FROM t.lease_until - clock_timestamp()) * 1000000)::bigint,
            t.fingerprint, r.record
        FROM unnest(keys, nonces) AS a (key, nonce)
        CROSS JOIN LATERAL (SELECT * FROM idempotency t WHERE t.key = a.key LIMIT 1) t
        LEFT JOIN LATERAL (
            SELECT * FROM idempotency_record r WHERE r.token = t.token LIMIT 1) r ON true
        WHERE t.state = 'done' OR t.nonce <> a.nonce;
    END IF;
    IF conversation_keys IS NOT NULL THEN
        -- Only new messages extend a conversation: rows that this claim made.
        INSERT INTO idempotency_conversation AS c (key, heard_at, due, channel, scope, id)
        SELECT DISTINCT ON (a.conversation_key) a.conversation_key, clock_timestamp(),
            clock_timestamp() + interval '7 days', a.channel, a.scope, a.conversation
        FROM unnest(keys, nonces, channels, scopes, conversation_keys, conversations) AS a (
            key, nonce, channel, scope, conversation_key, conversation)
        CROSS JOIN LATERAL (
            SELECT t.nonce, t.attempt FROM idempotency t WHERE t.key = a.key LIMIT 1) t
        WHERE a.conversation_key IS NOT NULL AND t.nonce = a.nonce AND t.attempt = 1
        ORDER BY a.conversation_key
        ON CONFLICT (key) DO UPDATE SET heard_at = greatest(c.heard_at, excluded.heard_at);
    END IF;
END $$;

-- Takes over what idempotency_claim called free: a lapsed run, the claim's own run, a row whose
-- retention has ended. Answers only what the claim holds now. A row that another transaction holds
-- is passed by, unless it is the claim's own. The caller sorts the keys.
CREATE FUNCTION idempotency_take(
    keys uuid[], nonces uuid[], leases bigint[], channels text[], scopes text[],
    fingerprints bytea[], conversation_keys uuid[], conversations text[]
) RETURNS TABLE (key uuid, token bigint, attempt integer)
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    ended bigint;
    fresh integer[] := '{}';
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'local', true);
    END IF;
    FOR i IN 1 .. cardinality(keys) LOOP
        PERFORM FROM idempotency t WHERE t.key = keys[i] FOR UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            PERFORM FROM idempotency t WHERE t.key = keys[i] AND t.nonce = nonces[i] FOR UPDATE;
            CONTINUE WHEN NOT FOUND;
        END IF;
        UPDATE idempotency t SET
            token = CASE t.nonce WHEN nonces[i] THEN t.token
                ELSE nextval('idempotency_token') END,
            attempt = CASE t.nonce WHEN nonces[i] THEN t.attempt ELSE t.attempt + 1 END,
            claimed_at = CASE t.nonce WHEN nonces[i] THEN t.claimed_at
                ELSE clock_timestamp() END,
            fingerprint = CASE t.nonce WHEN nonces[i] THEN t.fingerprint
                ELSE fingerprints[i] END,
            lease_until = clock_timestamp() + leases[i] * interval '1 ms',
            nonce = nonces[i]
        WHERE t.key = keys[i] AND t.state = 'running'
            AND (t.nonce = nonces[i] OR t.lease_until <= clock_timestamp())
        RETURNING t.key, t.token, t.attempt INTO key, token, attempt;
        IF FOUND THEN
            RETURN NEXT;
            CONTINUE;
        END IF;
        DELETE FROM idempotency_record r USING idempotency t
        WHERE t.key = keys[i] AND t.state = 'done' AND r.token = t.token
            AND r.expires <= clock_timestamp()
            AND (r.idle IS NULL OR NOT EXISTS (
                SELECT FROM idempotency_conversation c WHERE c.key = t.conversation_key
                AND c.heard_at + r.idle * interval '1 ms' > clock_timestamp()))
        RETURNING r.token INTO ended;
        CONTINUE WHEN NOT FOUND;
        UPDATE idempotency t SET
            token = nextval('idempotency_token'), attempt = 1, claimed_at = clock_timestamp(),
            lease_until = clock_timestamp() + leases[i] * interval '1 ms', done_at = NULL,
            forgotten = false, nonce = nonces[i], state = 'running',
            conversation_key = conversation_keys[i], conversation = conversations[i],
            fingerprint = fingerprints[i]
        WHERE t.key = keys[i] AND t.state = 'done' AND t.token = ended
        RETURNING t.key, t.token, t.attempt INTO key, token, attempt;
        RETURN NEXT;
        fresh := fresh || i;
    END LOOP;
    -- After all rows, as in idempotency_claim: what is locked in one order does not deadlock.
    INSERT INTO idempotency_conversation AS c (key, heard_at, due, channel, scope, id)
    SELECT DISTINCT ON (conversation_keys[i]) conversation_keys[i], clock_timestamp(),
        clock_timestamp() + interval '7 days', channels[i], scopes[i], conversations[i]
    FROM unnest(fresh) AS f (i) WHERE conversation_keys[i] IS NOT NULL
    ORDER BY conversation_keys[i]
    ON CONFLICT (key) DO UPDATE SET heard_at = greatest(c.heard_at, excluded.heard_at);
END $$;

-- Ends runs by key and token; only updates. Answers what is in force: a record also if it was
-- there before. `keeps` in milliseconds; `lively` says that a row lives with its conversation.
-- The caller sorts the keys. The row of a forgotten conversation gets no record, and its release
-- leaves it done for a week.
CREATE FUNCTION idempotency_settle(
    keys uuid[], tokens bigint[], records bytea[], keeps bigint[], lively boolean[],
    released uuid[], released_tokens bigint[]
) RETURNS TABLE (key uuid, token bigint, recorded boolean)
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off
SET lock_timeout = '2s'
AS $$
#variable_conflict use_column
DECLARE
    ended integer := 0;
    conversation uuid;
    mark boolean;
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'local', true);
    END IF;
    IF cardinality(keys) = 1 THEN
        UPDATE idempotency t
        SET state = 'done', done_at = clock_timestamp(), lease_until = NULL, nonce = NULL
        WHERE t.key = keys[1] AND t.token = tokens[1] AND t.state = 'running'
        RETURNING t.conversation_key, t.forgotten INTO conversation, mark;
        IF FOUND THEN
            INSERT INTO idempotency_record (token, key, expires, idle, record)
            VALUES (tokens[1], keys[1], CASE WHEN keeps[1] < 60000 THEN clock_timestamp() + keeps[1] * interval '1 ms'
                    ELSE date_trunc('second', clock_timestamp() + (keeps[1] + 1000) * interval '1 ms')
                END,
                CASE WHEN lively[1] AND conversation IS NOT NULL THEN keeps[1] END,
                CASE WHEN NOT mark THEN records[1] END);
            key := keys[1];
            token := tokens[1];
            recorded := true;
            RETURN NEXT;
            ended := 1;
        END IF;
    ELSIF cardinality(keys) > 1 THEN
        RETURN QUERY WITH done AS (
            UPDATE idempotency t
            SET state = 'done', done_at = clock_timestamp(), lease_until = NULL, nonce = NULL
            FROM unnest(keys, tokens, records, keeps, lively)
                AS a (key, token, record, keep, lively)
            WHERE t.key = ANY (ARRAY[a.key]) AND t.token = a.token AND t.state = 'running'
            RETURNING a.key, a.token, a.keep,
                CASE WHEN a.lively AND t.conversation_key IS NOT NULL THEN a.keep END AS idle,
                CASE WHEN NOT t.forgotten THEN a.record END AS record
        )
        INSERT INTO idempotency_record AS r (token, key, expires, idle, record)
        SELECT d.token, d.key, CASE WHEN d.keep < 60000 THEN clock_timestamp() + d.keep * interval '1 ms'
                ELSE date_trunc('second', clock_timestamp() + (d.keep + 1000) * interval '1 ms')
            END, d.idle, d.record FROM done d
        RETURNING r.key, r.token, true;
        GET DIAGNOSTICS ended = ROW_COUNT;
    END IF;
    IF ended > 0 AND true = ANY (lively) THEN
        -- The sweeper is to look at a conversation no later than its first row may end.
        UPDATE idempotency_conversation c SET due = least(c.due, e.expires)
        FROM (
            SELECT t.conversation_key, min(r.expires) AS expires
            FROM unnest(keys, tokens, lively) AS a (key, token, lively)
            CROSS JOIN LATERAL (
                SELECT t.conversation_key FROM idempotency t WHERE t.key = a.key LIMIT 1) t
            CROSS JOIN LATERAL (
                SELECT r.expires FROM idempotency_record r WHERE r.token = a.token LIMIT 1) r
            WHERE a.lively GROUP BY t.conversation_key ORDER BY t.conversation_key
        ) e
        WHERE c.key = ANY (ARRAY[e.conversation_key]) AND c.due > e.expires;
    END IF;
    IF ended < cardinality(keys) THEN
        -- Sent again: the row is done under this very token.
        RETURN QUERY SELECT t.key, t.token, true FROM unnest(keys, tokens) AS a (key, token)
        CROSS JOIN LATERAL (
            SELECT * FROM idempotency t WHERE t.key = a.key LIMIT 1) t
        WHERE t.token = a.token AND t.state = 'done';
    END IF;
    IF cardinality(released) > 0 THEN
        RETURN QUERY DELETE FROM idempotency t
        USING unnest(released, released_tokens) AS a (key, token)
        WHERE t.key = ANY (ARRAY[a.key]) AND t.token = a.token AND t.state = 'running'
            AND NOT t.forgotten
        RETURNING t.key, t.token, false;
        RETURN QUERY WITH done AS (
            UPDATE idempotency t
            SET state = 'done', done_at = clock_timestamp(), lease_until = NULL, nonce = NULL
            FROM unnest(released, released_tokens) AS a (key, token)
            WHERE t.key = ANY (ARRAY[a.key]) AND t.token = a.token AND t.state = 'running'
                AND t.forgotten
            RETURNING t.key, t.token
        )
        INSERT INTO idempotency_record AS r (token, key, expires)
        SELECT d.token, d.key, clock_timestamp() + interval '7 days' FROM done d
        RETURNING r.key, r.token, false;
    END IF;
END $$;

-- Extends leases by key and token, also lapsed ones that nobody took over. Answers those that were
-- extended. The caller sorts the keys.
CREATE FUNCTION idempotency_renew(keys uuid[], tokens bigint[], leases bigint[])
RETURNS TABLE (key uuid, token bigint)
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off
SET lock_timeout = '2s'
AS $$
#variable_conflict use_column
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'local', true);
    END IF;
    RETURN QUERY UPDATE idempotency t
    SET lease_until = clock_timestamp() + a.lease * interval '1 ms'
    FROM unnest(keys, tokens, leases) AS a (key, token, lease)
    WHERE t.key = ANY (ARRAY[a.key]) AND t.token = a.token AND t.state = 'running'
    RETURNING t.key, t.token;
END $$;

-- Answers how keys stand, and changes nothing. A key without a row, or with one whose retention
-- has ended, is not in the answer.
CREATE FUNCTION idempotency_look(keys uuid[])
RETURNS TABLE (key uuid, done boolean, remaining bigint, record bytea)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET plan_cache_mode = force_generic_plan
SET jit = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT t.key, t.state = 'done',
        (extract(epoch FROM t.lease_until - clock_timestamp()) * 1000000)::bigint, r.record
    FROM unnest(keys) AS a (key)
    CROSS JOIN LATERAL (SELECT * FROM idempotency t WHERE t.key = a.key LIMIT 1) t
    LEFT JOIN LATERAL (
        SELECT * FROM idempotency_record r WHERE r.token = t.token LIMIT 1) r ON true
    WHERE t.state <> 'done' OR r.expires > clock_timestamp() OR r.idle IS NOT NULL AND EXISTS (
        SELECT FROM idempotency_conversation c WHERE c.key = t.conversation_key
        AND c.heard_at + r.idle * interval '1 ms' > clock_timestamp());
END $$;

-- Marks up to `most` rows of a conversation and takes their payload; answers how many it marked.
CREATE FUNCTION idempotency_forget(whose uuid, most bigint) RETURNS bigint
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off
SET lock_timeout = '2s'
AS $$
#variable_conflict use_column
DECLARE
    marked uuid[];
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'local', true);
    END IF;
    marked := ARRAY (
        SELECT t.key FROM idempotency t
        WHERE t.conversation_key = whose AND NOT t.forgotten
        ORDER BY t.key LIMIT most FOR UPDATE);
    UPDATE idempotency t SET forgotten = true WHERE t.key = ANY (marked);
    -- A later statement, which sees the records of runs that ended while the marks were waited for.
    UPDATE idempotency_record r SET record = NULL WHERE r.token = ANY (ARRAY (
        SELECT t.token FROM idempotency t WHERE t.key = ANY (marked) AND t.state = 'done'));
    RETURN cardinality(marked);
END $$;

-- Removes up to `most` done rows whose retention has ended, and answers how many. Rows that
-- another transaction holds are passed by, so that sweepers share the work and wait for nobody.
CREATE FUNCTION idempotency_sweep(most bigint) RETURNS bigint
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := clock_timestamp();
    ended uuid[];
    ended_tokens bigint[];
    held uuid[];
    held_tokens bigint[];
    talk idempotency_conversation;
    swept bigint;
    next timestamptz;
BEGIN
    SELECT array_agg(e.key), array_agg(e.token) INTO ended, ended_tokens FROM (
        SELECT r.key, r.token FROM idempotency_record r
        WHERE r.idle IS NULL AND r.expires <= moment
        ORDER BY r.expires LIMIT most FOR UPDATE SKIP LOCKED) e;
    SELECT array_agg(h.key), array_agg(h.token) INTO held, held_tokens FROM (
        SELECT t.key, t.token FROM unnest(ended, ended_tokens) AS e (key, token)
        CROSS JOIN idempotency t
        WHERE t.key = ANY (ARRAY[e.key]) AND t.token = e.token AND t.state = 'done'
        FOR UPDATE OF t SKIP LOCKED) h;
    DELETE FROM idempotency_record r WHERE r.token = ANY (held_tokens);
    DELETE FROM idempotency t WHERE t.key = ANY (held);
    swept := coalesce(cardinality(held), 0);
    IF swept < cardinality(ended) THEN
        -- Records whose row was deleted by hand: nothing leads to them.
        DELETE FROM idempotency_record r WHERE r.token = ANY (ended_tokens) AND NOT EXISTS (
            SELECT FROM idempotency t WHERE t.key = r.key AND t.token = r.token);
    END IF;
    FOR talk IN
        SELECT * FROM idempotency_conversation c WHERE c.due <= moment
        ORDER BY c.due LIMIT most FOR UPDATE SKIP LOCKED
    LOOP
        EXIT WHEN swept >= most;
        SELECT array_agg(h.key), array_agg(h.token) INTO held, held_tokens FROM (
            SELECT t.key, t.token FROM idempotency t
            CROSS JOIN LATERAL (
                SELECT * FROM idempotency_record r WHERE r.token = t.token LIMIT 1) r
            WHERE t.conversation_key = talk.key AND t.state = 'done'
                AND r.idle IS NOT NULL AND r.expires <= moment
                AND talk.heard_at + r.idle * interval '1 ms' <= moment
            LIMIT most - swept FOR UPDATE OF t SKIP LOCKED) h;
        DELETE FROM idempotency_record r WHERE r.token = ANY (held_tokens);
        DELETE FROM idempotency t WHERE t.key = ANY (held);
        swept := swept + coalesce(cardinality(held), 0);
        EXIT WHEN swept >= most;
        SELECT min(greatest(r.expires, talk.heard_at + r.idle * interval '1 ms')) INTO next
        FROM idempotency t
        CROSS JOIN LATERAL (
            SELECT * FROM idempotency_record r WHERE r.token = t.token LIMIT 1) r
        WHERE t.conversation_key = talk.key AND r.idle IS NOT NULL;
        IF next IS NULL AND NOT EXISTS (
            SELECT FROM idempotency t WHERE t.conversation_key = talk.key
        ) THEN
            DELETE FROM idempotency_conversation c WHERE c.key = talk.key;
        ELSE
            UPDATE idempotency_conversation c SET due = CASE
                WHEN next IS NULL THEN moment + interval '7 days'
                WHEN next > moment THEN next
                ELSE moment + interval '1 s' END
            WHERE c.key = talk.key;
        END IF;
    END LOOP;
    RETURN swept;
END $$;
