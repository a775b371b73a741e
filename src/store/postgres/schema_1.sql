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

-- One row per message, with its record once it is done.
--
-- `key` and `conversation_key` are the first 16 bytes of a SHA-256 over channel, scope and id, each
-- behind its length. The texts are for reading; a NUL, which text cannot hold, is written `␀`.
--
-- `expires` is when a done row may go. It is null while the message runs, and where the row lives as
-- long as its conversation: then that is `idle` milliseconds after `done_at` at the earliest.
-- `record` is null where it was forgotten.
--
-- No index mentions `lease_until`, and pages are left with a little room: so renewals rewrite the row
-- where it stands, and touch no index. The end of a run moves it, for it grows by its record.
CREATE TABLE idempotency (
    key uuid PRIMARY KEY,
    token bigint NOT NULL,
    claimed_at timestamptz NOT NULL,
    lease_until timestamptz,
    done_at timestamptz,
    expires timestamptz,
    idle bigint,
    attempt integer NOT NULL,
    forgotten boolean NOT NULL,
    nonce uuid,
    conversation_key uuid,
    state text NOT NULL,
    channel text NOT NULL,
    scope text NOT NULL,
    id text NOT NULL,
    conversation text,
    fingerprint bytea,
    record bytea
) WITH (fillfactor = 90);
CREATE INDEX ON idempotency (conversation_key) WHERE conversation_key IS NOT NULL;
CREATE INDEX ON idempotency (expires) WHERE expires IS NOT NULL;

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

-- What a lone call sends has functions of its own, which take and give single values and set no
-- more than they need: arrays, rows and settings would cost as much again as the work itself.

-- Makes the row of a key that has none, and answers how the key stands for an attempt. `free` marks
-- a row that idempotency_take may take over. No answer (a row of nulls): it was removed at this very
-- moment, to be claimed again. `a_lease` in milliseconds; negative: the key is likely to have a row,
-- so it is looked for first, which changes no answer.
CREATE FUNCTION idempotency_begin(
    a_key uuid, a_nonce uuid, a_lease bigint, a_channel text, a_scope text, an_id text,
    a_fingerprint bytea, a_conversation_key uuid, a_conversation text,
    OUT key uuid, OUT done boolean, OUT free boolean, OUT nonce uuid, OUT token bigint,
    OUT attempt integer, OUT remaining bigint, OUT fingerprint bytea, OUT record bytea
) LANGUAGE plpgsql SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
    FOR turn IN CASE WHEN a_lease < 0 THEN 1 ELSE 2 END .. 3 LOOP
        IF turn = 2 THEN
            IF current_setting('synchronous_commit') = 'off' THEN
                PERFORM set_config('synchronous_commit', 'local', true);
            END IF;
            INSERT INTO idempotency AS t (
                key, token, claimed_at, lease_until, attempt, forgotten, nonce,
                conversation_key, state, channel, scope, id, conversation, fingerprint)
            VALUES (a_key, nextval('idempotency_token'), clock_timestamp(),
                clock_timestamp() + abs(a_lease) * interval '1 ms', 1, false, a_nonce,
                a_conversation_key, 'running', a_channel, a_scope, an_id, a_conversation,
                a_fingerprint)
            ON CONFLICT (key) DO NOTHING
            RETURNING t.key, false, false, t.nonce, t.token, 1, 0
            INTO key, done, free, nonce, token, attempt, remaining;
            EXIT WHEN FOUND;
        ELSE
            SELECT t.key, t.state = 'done',
                CASE t.state
                WHEN 'done' THEN
                    coalesce(t.expires, t.done_at + t.idle * interval '1 ms') <= clock_timestamp()
                ELSE t.lease_until <= clock_timestamp() OR t.nonce = a_nonce END,
                t.nonce, t.token, t.attempt,
                (extract(epoch FROM t.lease_until - clock_timestamp()) * 1000000)::bigint,
                t.fingerprint, t.record
            FROM idempotency t WHERE t.key = a_key
            INTO key, done, free, nonce, token, attempt, remaining, fingerprint, record;
            IF FOUND THEN
                RETURN;
            END IF;
        END IF;
    END LOOP;
    IF key IS NOT NULL AND a_conversation_key IS NOT NULL THEN
        -- Only new messages extend a conversation.
        INSERT INTO idempotency_conversation AS c (key, heard_at, due, channel, scope, id)
        VALUES (a_conversation_key, clock_timestamp(), clock_timestamp() + interval '7 days',
            a_channel, a_scope, a_conversation)
        ON CONFLICT (key) DO UPDATE SET heard_at = greatest(c.heard_at, excluded.heard_at);
    END IF;
END $$;

-- Makes a row of each key that has none, and answers how every key stands, as idempotency_begin
-- does. The caller sorts the `total` keys, each once. A key that is not in the answer was removed at
-- this very moment: to be claimed again. Of two answers for a key the later one counts.
-- `spoken` says that some have conversations. `look_first` is cheaper where most keys have a row, and
-- changes no answer.
CREATE FUNCTION idempotency_claim(
    keys uuid[], nonces uuid[], leases bigint[], channels text[], scopes text[], ids text[],
    fingerprints bytea[], conversation_keys uuid[], conversations text[], spoken boolean,
    look_first boolean, total integer
) RETURNS TABLE (
    key uuid, done boolean, free boolean, nonce uuid, token bigint, attempt integer,
    remaining bigint, fingerprint bytea, record bytea
) LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    told integer := 0;
    more integer;
    made integer := 0;
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'local', true);
    END IF;
    FOR turn IN CASE WHEN look_first THEN 1 ELSE 2 END .. 3 LOOP
        IF turn = 2 THEN
            RETURN QUERY INSERT INTO idempotency AS t (
                key, token, claimed_at, lease_until, attempt, forgotten, nonce,
                conversation_key, state, channel, scope, id, conversation, fingerprint)
            SELECT a.key, nextval('idempotency_token'), clock_timestamp(),
                clock_timestamp() + a.lease * interval '1 ms', 1, false, a.nonce,
                a.conversation_key, 'running', a.channel, a.scope, a.id, a.conversation,
                a.fingerprint
            FROM (
                SELECT unnest(keys) AS key, unnest(nonces) AS nonce, unnest(leases) AS lease,
                    unnest(channels) AS channel, unnest(scopes) AS scope, unnest(ids) AS id,
                    unnest(fingerprints) AS fingerprint,
                    unnest(conversation_keys) AS conversation_key,
                    unnest(conversations) AS conversation
            ) a
            ON CONFLICT (key) DO NOTHING
            RETURNING t.key, false, false, t.nonce, t.token, 1, 0::bigint, t.fingerprint,
                NULL::bytea;
            GET DIAGNOSTICS more = ROW_COUNT;
            made := more;
        ELSE
            -- Without what this very transaction made.
            RETURN QUERY SELECT t.key, t.state = 'done',
                CASE t.state
                WHEN 'done' THEN
                    coalesce(t.expires, t.done_at + t.idle * interval '1 ms') <= clock_timestamp()
                ELSE t.lease_until <= clock_timestamp() OR t.nonce = a.nonce END,
                t.nonce, t.token, t.attempt,
                (extract(epoch FROM t.lease_until - clock_timestamp()) * 1000000)::bigint,
                t.fingerprint, t.record
            FROM (SELECT unnest(keys) AS key, unnest(nonces) AS nonce) a
            JOIN idempotency t ON t.key = ANY (ARRAY[a.key])
            WHERE t.xmin IS DISTINCT FROM pg_current_xact_id_if_assigned()::xid;
            GET DIAGNOSTICS more = ROW_COUNT;
        END IF;
        told := told + more;
        EXIT WHEN told >= total;
    END LOOP;
    IF spoken AND made > 0 THEN
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
-- is passed by, unless it is the claim's own. The caller sorts the keys. `leases` has, behind one
-- lease for each key, how long each key's run must have been lapsed, in milliseconds.
CREATE FUNCTION idempotency_take(
    keys uuid[], nonces uuid[], leases bigint[], channels text[], scopes text[],
    fingerprints bytea[], conversation_keys uuid[], conversations text[]
) RETURNS TABLE (key uuid, token bigint, attempt integer)
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    fresh integer[] := '{}';
    total integer := cardinality(keys);
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'local', true);
    END IF;
    FOR i IN 1 .. total LOOP
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
                ELSE coalesce(fingerprints[i], t.fingerprint) END,
            lease_until = clock_timestamp() + leases[i] * interval '1 ms',
            nonce = nonces[i]
        WHERE t.key = keys[i] AND t.state = 'running'
            AND (t.nonce = nonces[i]
                OR t.lease_until + leases[total + i] * interval '1 ms' <= clock_timestamp())
        RETURNING t.key, t.token, t.attempt INTO key, token, attempt;
        IF FOUND THEN
            RETURN NEXT;
            CONTINUE;
        END IF;
        UPDATE idempotency t SET
            token = nextval('idempotency_token'), attempt = 1, claimed_at = clock_timestamp(),
            lease_until = clock_timestamp() + leases[i] * interval '1 ms', done_at = NULL,
            expires = NULL, idle = NULL, record = NULL,
            forgotten = false, nonce = nonces[i], state = 'running',
            conversation_key = conversation_keys[i], conversation = conversations[i],
            fingerprint = fingerprints[i]
        WHERE t.key = keys[i] AND t.state = 'done'
            AND coalesce(t.expires, t.done_at + t.idle * interval '1 ms') <= clock_timestamp()
            AND (t.idle IS NULL OR NOT EXISTS (
                SELECT FROM idempotency_conversation c WHERE c.key = t.conversation_key
                AND c.heard_at + t.idle * interval '1 ms' > clock_timestamp()))
        RETURNING t.key, t.token, t.attempt INTO key, token, attempt;
        IF FOUND THEN
            RETURN NEXT;
            fresh := fresh || i;
        END IF;
    END LOOP;
    -- After all rows, as in idempotency_claim: what is locked in one order does not deadlock.
    INSERT INTO idempotency_conversation AS c (key, heard_at, due, channel, scope, id)
    SELECT DISTINCT ON (conversation_keys[i]) conversation_keys[i], clock_timestamp(),
        clock_timestamp() + interval '7 days', channels[i], scopes[i], conversations[i]
    FROM unnest(fresh) AS f (i) WHERE conversation_keys[i] IS NOT NULL
    ORDER BY conversation_keys[i]
    ON CONFLICT (key) DO UPDATE SET heard_at = greatest(c.heard_at, excluded.heard_at);
END $$;

-- Ends a run by key and token with a record; only updates. Answers whether the record is in force,
-- also if it was there before. `a_keep` in milliseconds; `lively` says that the row lives with its
-- conversation. The row of a forgotten conversation gets no record.
CREATE FUNCTION idempotency_end(
    a_key uuid, a_token bigint, a_record bytea, a_keep bigint, lively boolean
) RETURNS boolean LANGUAGE plpgsql SET enable_seqscan = off SET lock_timeout = '2s' AS $$
#variable_conflict use_column
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'local', true);
    END IF;
    UPDATE idempotency t SET
        state = 'done', done_at = clock_timestamp(), lease_until = NULL, nonce = NULL,
        expires = CASE
            WHEN lively AND t.conversation_key IS NOT NULL THEN NULL
            WHEN a_keep < 60000 THEN clock_timestamp() + a_keep * interval '1 ms'
            ELSE date_trunc('second', clock_timestamp() + (a_keep + 1000) * interval '1 ms') END,
        idle = CASE WHEN lively AND t.conversation_key IS NOT NULL THEN a_keep END,
        record = CASE WHEN NOT t.forgotten THEN a_record END
    WHERE t.key = a_key AND t.token = a_token AND t.state = 'running';
    IF NOT FOUND THEN
        -- Sent again: the row is done under this very token.
        PERFORM FROM idempotency t WHERE t.key = a_key AND t.token = a_token AND t.state = 'done';
        RETURN FOUND;
    END IF;
    IF lively THEN
        PERFORM idempotency_watch(ARRAY[a_key]);
    END IF;
    RETURN true;
END $$;

-- Ends a run by key and token without a record. Answers whether there was such a run. That of a
-- forgotten conversation leaves its row done for a week.
CREATE FUNCTION idempotency_release(a_key uuid, a_token bigint) RETURNS boolean
LANGUAGE plpgsql SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
    DELETE FROM idempotency t WHERE t.key = a_key AND t.token = a_token
        AND t.state = 'running' AND NOT t.forgotten;
    IF FOUND THEN
        RETURN true;
    END IF;
    -- A later statement, which sees a mark that was waited for.
    UPDATE idempotency t SET
        state = 'done', done_at = clock_timestamp(), lease_until = NULL, nonce = NULL,
        expires = clock_timestamp() + interval '7 days'
    WHERE t.key = a_key AND t.token = a_token AND t.state = 'running' AND t.forgotten;
    RETURN FOUND;
END $$;

-- The sweeper is to look at the conversations of these keys no later than their rows may end.
CREATE FUNCTION idempotency_watch(keys uuid[]) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
#variable_conflict use_column
BEGIN
    UPDATE idempotency_conversation c SET due = least(c.due, e.earliest)
    FROM (
        SELECT t.conversation_key, min(t.done_at + t.idle * interval '1 ms') AS earliest
        FROM unnest(keys) AS a (key)
        CROSS JOIN LATERAL (SELECT * FROM idempotency t WHERE t.key = a.key LIMIT 1) t
        WHERE t.idle IS NOT NULL
        GROUP BY t.conversation_key ORDER BY t.conversation_key
    ) e
    WHERE c.key = ANY (ARRAY[e.conversation_key]) AND c.due > e.earliest;
END $$;

-- idempotency_end for many runs, and idempotency_release for others, each sorted by key. What there
-- is none of is null, also `lively` where no row lives with its conversation. Answers what is not in
-- force.
CREATE FUNCTION idempotency_settle(
    keys uuid[], tokens bigint[], records bytea[], keeps bigint[], lively boolean[],
    released uuid[], released_tokens bigint[]
) RETURNS TABLE (key uuid, token bigint, recorded boolean)
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off
SET lock_timeout = '2s'
AS $$
#variable_conflict use_column
DECLARE
    ended integer;
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'local', true);
    END IF;
    IF keys IS NOT NULL THEN
        UPDATE idempotency t SET
            state = 'done', done_at = clock_timestamp(), lease_until = NULL, nonce = NULL,
            expires = CASE
                WHEN a.lively AND t.conversation_key IS NOT NULL THEN NULL
                WHEN a.keep < 60000 THEN clock_timestamp() + a.keep * interval '1 ms'
                ELSE date_trunc('second', clock_timestamp() + (a.keep + 1000) * interval '1 ms')
                END,
            idle = CASE WHEN a.lively AND t.conversation_key IS NOT NULL THEN a.keep END,
            record = CASE WHEN NOT t.forgotten THEN a.record END
        FROM (
            SELECT unnest(keys) AS key, unnest(tokens) AS token, unnest(records) AS record,
                unnest(keeps) AS keep, unnest(lively) AS lively
        ) a
        WHERE t.key = ANY (ARRAY[a.key]) AND t.token = a.token AND t.state = 'running';
        GET DIAGNOSTICS ended = ROW_COUNT;
        IF lively IS NOT NULL AND ended > 0 THEN
            PERFORM idempotency_watch(keys);
        END IF;
        IF ended < cardinality(keys) THEN
            RETURN QUERY SELECT a.key, a.token, true FROM unnest(keys, tokens) AS a (key, token)
            LEFT JOIN LATERAL (SELECT * FROM idempotency t WHERE t.key = a.key LIMIT 1) t ON true
            WHERE t.token IS DISTINCT FROM a.token OR t.state <> 'done';
        END IF;
    END IF;
    FOR at IN 1 .. coalesce(cardinality(released), 0) LOOP
        IF NOT idempotency_release(released[at], released_tokens[at]) THEN
            key := released[at];
            token := released_tokens[at];
            recorded := false;
            RETURN NEXT;
        END IF;
    END LOOP;
END $$;

-- idempotency_end as the last statement of the transaction in which the run wrote, which was begun
-- with the setting `tower.run` for it alone. Fails if this is another transaction, or if the record
-- is not in force: nothing is committed then.
CREATE FUNCTION idempotency_conclude(
    a_key uuid, a_token bigint, a_record bytea, a_keep bigint, lively boolean, run text
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('tower.run', true) IS DISTINCT FROM run THEN
        RAISE EXCEPTION 'this is not the transaction that was lent' USING ERRCODE = 'TI002';
    END IF;
    IF NOT idempotency_end(a_key, a_token, a_record, a_keep, lively) THEN
        RAISE EXCEPTION 'another run took over' USING ERRCODE = 'TI001';
    END IF;
END $$;

-- The same for a run with several messages.
CREATE FUNCTION idempotency_conclude_all(
    keys uuid[], tokens bigint[], records bytea[], keeps bigint[], lively boolean[], run text
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('tower.run', true) IS DISTINCT FROM run THEN
        RAISE EXCEPTION 'this is not the transaction that was lent' USING ERRCODE = 'TI002';
    END IF;
    PERFORM FROM idempotency_settle(keys, tokens, records, keeps, lively, NULL, NULL);
    IF FOUND THEN
        RAISE EXCEPTION 'another run took over' USING ERRCODE = 'TI001';
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
        (extract(epoch FROM t.lease_until - clock_timestamp()) * 1000000)::bigint, t.record
    FROM (SELECT unnest(keys) AS key) a JOIN idempotency t ON t.key = ANY (ARRAY[a.key])
    WHERE t.state <> 'done'
        OR coalesce(t.expires, t.done_at + t.idle * interval '1 ms') > clock_timestamp()
        OR t.idle IS NOT NULL AND EXISTS (
            SELECT FROM idempotency_conversation c WHERE c.key = t.conversation_key
            AND c.heard_at + t.idle * interval '1 ms' > clock_timestamp());
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
    -- Locked first and in order: whoever ends one of these runs meanwhile waits, or is seen.
    marked := ARRAY (
        SELECT t.key FROM idempotency t
        WHERE t.conversation_key = whose AND NOT t.forgotten
        ORDER BY t.key LIMIT most FOR UPDATE);
    UPDATE idempotency t SET forgotten = true, record = NULL WHERE t.key = ANY (marked);
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
    talk idempotency_conversation;
    swept bigint;
    more bigint;
    next timestamptz;
BEGIN
    DELETE FROM idempotency t WHERE t.ctid = ANY (ARRAY (
        SELECT e.ctid FROM idempotency e WHERE e.expires <= moment
        ORDER BY e.expires LIMIT most FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS swept = ROW_COUNT;
    FOR talk IN
        SELECT * FROM idempotency_conversation c WHERE c.due <= moment
        ORDER BY c.due LIMIT most FOR UPDATE SKIP LOCKED
    LOOP
        EXIT WHEN swept >= most;
        DELETE FROM idempotency t WHERE t.ctid = ANY (ARRAY (
            SELECT e.ctid FROM idempotency e
            WHERE e.conversation_key = talk.key
                AND e.done_at + e.idle * interval '1 ms' <= moment
                AND talk.heard_at + e.idle * interval '1 ms' <= moment
            LIMIT most - swept FOR UPDATE SKIP LOCKED));
        GET DIAGNOSTICS more = ROW_COUNT;
        swept := swept + more;
        EXIT WHEN swept >= most;
        SELECT min(greatest(t.done_at, talk.heard_at) + t.idle * interval '1 ms') INTO next
        FROM idempotency t WHERE t.conversation_key = talk.key AND t.idle IS NOT NULL;
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
