-- What PostgresStore keeps for an inbox, a part of version 1.
--
-- Locks are taken in one order, so that nothing deadlocks: first the rows of `idempotency_line`,
-- sorted by line; then those of `idempotency_dead`; then those of `idempotency_seen`, sorted by
-- key; then those of `idempotency_life`. Messages are written only by who holds their line's row.
-- Whatever ends a line or a turn locks the line's row in one statement and looks for messages in a
-- later one, which sees what was committed before the lock was had. So a message that is being
-- accepted, under the same lock, is never left behind without a row of its line.

-- Where a message stands among all others: 65536 times a number of this sequence, plus where it
-- stood in its call. Drawn while its line is locked. No CACHE: a session that kept numbers back
-- would put later messages before earlier ones.
CREATE SEQUENCE idempotency_place;

-- One row per accepted message, kept for its retention; written once. `place` says where the
-- message waits, if it still does. `idle` in milliseconds: the row lives as long as its
-- conversation. `expires` is the end of retention, or when the sweeper looks at the row next.
CREATE TABLE idempotency_seen (
    key uuid PRIMARY KEY,
    line uuid NOT NULL,
    place bigint NOT NULL,
    at timestamptz NOT NULL,
    expires timestamptz NOT NULL,
    idle bigint,
    channel text NOT NULL,
    scope text NOT NULL,
    id text NOT NULL,
    conversation text
);
CREATE INDEX ON idempotency_seen (expires);

-- Until when the keys of a conversation live that live with it. Written in advance: a new message
-- writes here only if less than `idle` is left.
CREATE TABLE idempotency_life (
    line uuid PRIMARY KEY,
    expires timestamptz NOT NULL,
    idle bigint NOT NULL
);
CREATE INDEX ON idempotency_life (expires);

-- One row per line that has messages, or whose turn somebody has. `due` is when anyone may take
-- the turn: now, at a retry, or when its lease lapses. `token` names the turn somebody has. `held`:
-- all wait until `due` for the first message. `lapses`: how often the turn lapsed since a message
-- ended last.
CREATE TABLE idempotency_line (
    line uuid PRIMARY KEY,
    due timestamptz NOT NULL,
    token bigint,
    lapses integer NOT NULL,
    held boolean NOT NULL
) WITH (
    fillfactor = 50, vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX ON idempotency_line (due);

-- One row per message that waits or is handled; deleted when it is done. `failures`: how many
-- attempts failed. `due`: when it may be tried again, where others may pass it. The request is not
-- compressed: it does not stay for long.
CREATE TABLE idempotency_message (
    line uuid NOT NULL,
    place bigint NOT NULL,
    received_at timestamptz NOT NULL,
    due timestamptz,
    failures bigint NOT NULL,
    key uuid NOT NULL,
    fault text,
    raw bytea NOT NULL,
    PRIMARY KEY (line, place)
) WITH (
    vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0,
    toast.vacuum_truncate = off
);
ALTER TABLE idempotency_message ALTER COLUMN raw SET STORAGE EXTERNAL;

-- The requests of done messages, where they are kept; each goes with its row of `idempotency_seen`.
CREATE TABLE idempotency_kept (
    key uuid PRIMARY KEY,
    line uuid NOT NULL,
    raw bytea NOT NULL
);
CREATE INDEX ON idempotency_kept (line);

-- One row per message that is not handled again, unless it is redriven.
CREATE TABLE idempotency_dead (
    death bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    line uuid NOT NULL,
    key uuid NOT NULL,
    attempts bigint NOT NULL,
    received_at timestamptz NOT NULL,
    died_at timestamptz NOT NULL,
    fault text NOT NULL,
    raw bytea NOT NULL
);
CREATE INDEX ON idempotency_dead (key);
CREATE INDEX ON idempotency_dead (line);

-- How far known messages have come. No stage: done, and its retention has ended. Here and below
-- LIMIT 1 keeps the planner from reading a whole table at once where it expects a small one.
CREATE FUNCTION idempotency_stage(known uuid[], moment timestamptz)
RETURNS TABLE (key uuid, stage text) LANGUAGE sql STABLE
AS $$
    SELECT s.key, CASE
        WHEN (SELECT true FROM idempotency_message m
            WHERE m.line = s.line AND m.place = s.place LIMIT 1) THEN 'waiting'
        WHEN (SELECT true FROM idempotency_dead d WHERE d.key = s.key LIMIT 1) THEN 'dead'
        WHEN s.expires > moment OR (SELECT l.expires > moment FROM idempotency_life l
            WHERE s.idle IS NOT NULL AND l.line = s.line LIMIT 1) THEN 'done' END
    FROM idempotency_seen s WHERE s.key = ANY (known) OFFSET 0
$$;

-- The first messages of a line that may be handled now: up to `most`, and no more than `room`
-- bytes beside the first one.
CREATE FUNCTION idempotency_ready(
    whose uuid, most bigint, room bigint, lapses bigint, moment timestamptz
) RETURNS TABLE (
    place bigint, attempt bigint, received_at timestamptz, fault text, raw bytea
) LANGUAGE sql STABLE
AS $$
    SELECT r.place, r.failures + 1 + CASE r.nth WHEN 1 THEN lapses ELSE 0 END, r.received_at,
        r.fault, r.raw
    FROM (
        SELECT m.*, row_number() OVER w AS nth, sum(octet_length(m.raw)) OVER w AS size
        FROM (
            SELECT * FROM idempotency_message m
            WHERE m.line = whose AND (m.due IS NULL OR m.due <= moment)
            ORDER BY m.place LIMIT most) m
        WINDOW w AS (ORDER BY m.place ROWS UNBOUNDED PRECEDING)
    ) r
    WHERE r.nth = 1 OR r.size <= room
$$;

-- Keeps new messages, in the order of the arrays; each key once. Which are new: `fresh`, or all
-- keys if that is NULL; the place of the nth key is `base` + n. `begun` and `tokens`: the turns that
-- were given. `known` and `stages`: repeats, and how far they have come. A key of which nothing is
-- said was removed at this very moment: to be accepted again. `keeps` and `leases` in milliseconds;
-- no lease: no turn.
CREATE FUNCTION idempotency_accept(
    keys uuid[], lines uuid[], keeps bigint[], lively boolean[], leases bigint[],
    channels text[], scopes text[], ids text[], conversations text[], raws bytea[],
    OUT base bigint, OUT fresh uuid[], OUT begun uuid[], OUT tokens bigint[],
    OUT known uuid[], OUT stages text[]
) LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off
SET lock_timeout = '2s'
AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := clock_timestamp();
    open uuid[] := keys;
    gone uuid[];
    whole boolean := true;
    made bigint;
    met uuid[];
    met_stages text[];
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'local', true);
    END IF;
    known := ARRAY (SELECT s.key FROM idempotency_seen s WHERE s.key = ANY (keys));
    IF cardinality(known) > 0 THEN
        whole := false;
        open := ARRAY (SELECT a.key FROM unnest(keys) AS a (key) WHERE a.key <> ALL (known));
        SELECT array_agg(t.key), array_agg(t.stage) INTO known, stages
        FROM idempotency_stage(known, moment) t;
        IF array_position(stages, NULL) IS NOT NULL THEN
            -- Done, and the retention has ended: as if there were no row.
            WITH removed AS (
                DELETE FROM idempotency_seen s WHERE s.key = ANY (known) AND s.expires <= moment
                AND (SELECT t.stage FROM idempotency_stage(ARRAY[s.key], moment) t) IS NULL
                RETURNING s.key
            ) SELECT array_agg(r.key) INTO gone FROM removed r;
            DELETE FROM idempotency_kept k WHERE k.key = ANY (gone);
            open := open || gone;
        END IF;
        fresh := open;
        IF cardinality(open) = 0 THEN
            RETURN;
        END IF;
    END IF;
    -- All lines, before the first key and before the places. A line that is there is locked and
    -- not written, unless it only waits for the retry of messages that others may pass.
    WITH began AS (
        INSERT INTO idempotency_line AS l (line, due, token, lapses, held)
        SELECT o.line, moment + coalesce(o.lease, 0) * interval '1 ms',
            CASE WHEN o.lease IS NOT NULL THEN nextval('idempotency_token') END, 0, false
        FROM (
            SELECT DISTINCT ON (a.line) a.line, a.lease
            FROM unnest(keys, lines, leases) WITH ORDINALITY AS a (key, line, lease, nth)
            WHERE whole OR a.key = ANY (open)
            ORDER BY a.line, a.nth) o
        ON CONFLICT (line) DO UPDATE SET due = clock_timestamp()
        WHERE l.token IS NULL AND NOT l.held AND l.due > clock_timestamp()
        RETURNING l.line, l.token
    ) SELECT array_agg(b.line), array_agg(b.token) INTO begun, tokens
    FROM began b WHERE b.token IS NOT NULL;
    base := nextval('idempotency_place') * 65536;
    moment := clock_timestamp();
    WITH kept AS (
        INSERT INTO idempotency_message (line, place, received_at, failures, key, raw)
        SELECT a.line, base + a.nth, moment, 0, a.key, a.raw
        FROM (
            SELECT unnest(keys) AS key, unnest(lines) AS line, unnest(raws) AS raw,
                generate_subscripts(keys, 1) AS nth
        ) a
        WHERE whole OR a.key = ANY (open)
    )
    INSERT INTO idempotency_seen AS s (
        key, line, place, at, expires, idle, channel, scope, id, conversation)
    SELECT a.key, a.line, base + a.nth, moment, CASE
            WHEN a.keep < 60000 THEN moment + a.keep * interval '1 ms'
            ELSE date_trunc('second', moment + (a.keep + 1000) * interval '1 ms') END,
        CASE WHEN a.lively THEN a.keep END, a.channel, a.scope, a.id, a.conversation
    FROM (
        SELECT unnest(keys) AS key, unnest(lines) AS line, unnest(keeps) AS keep,
            unnest(lively) AS lively, unnest(channels) AS channel, unnest(scopes) AS scope,
            unnest(ids) AS id, unnest(conversations) AS conversation,
            generate_subscripts(keys, 1) AS nth
    ) a
    WHERE whole OR a.key = ANY (open)
    ORDER BY a.key
    ON CONFLICT (key) DO NOTHING;
    GET DIAGNOSTICS made = ROW_COUNT;
    IF made < cardinality(open) THEN
        -- Others accepted some of them while this call ran.
        fresh := ARRAY (
            SELECT a.key FROM unnest(keys) WITH ORDINALITY AS a (key, nth)
            CROSS JOIN LATERAL (
                SELECT s.place FROM idempotency_seen s WHERE s.key = a.key LIMIT 1) s
            WHERE s.place = base + a.nth);
        SELECT array_agg(t.key), array_agg(t.stage) INTO met, met_stages
        FROM idempotency_stage(ARRAY (
            SELECT o.key FROM unnest(open) AS o (key) WHERE o.key <> ALL (fresh)), moment) t;
        known := known || met;
        stages := stages || met_stages;
        open := fresh;
        whole := false;
        PERFORM idempotency_mend(keys, lines, leases, base, open, begun);
        SELECT array_agg(l.line), array_agg(l.token) INTO begun, tokens
        FROM idempotency_line l WHERE l.line = ANY (begun) AND l.token IS NOT NULL;
    END IF;
    IF conversations IS NOT NULL THEN
        INSERT INTO idempotency_life AS l (line, expires, idle)
        SELECT o.line, moment + o.idle * interval '1.0625 ms', o.idle FROM (
            SELECT a.line, max(a.keep) AS idle
            FROM unnest(keys, lines, keeps, lively) AS a (key, line, keep, lively)
            WHERE a.lively AND (whole OR a.key = ANY (open))
            GROUP BY a.line ORDER BY a.line) o
        WHERE (SELECT l.expires < moment + o.idle * interval '1 ms'
            FROM idempotency_life l WHERE l.line = o.line) IS NOT FALSE
        ON CONFLICT (line) DO UPDATE SET
            expires = greatest(l.expires, excluded.expires),
            idle = greatest(l.idle, excluded.idle);
        IF false = ANY (lively) THEN
            UPDATE idempotency_life l SET expires = moment + l.idle * interval '1.0625 ms'
            WHERE l.line = ANY (ARRAY (
                SELECT DISTINCT a.line
                FROM unnest(keys, lines, lively, conversations)
                    AS a (key, line, lively, conversation)
                WHERE NOT a.lively AND a.conversation IS NOT NULL
                    AND (whole OR a.key = ANY (open))
                ORDER BY a.line))
            AND l.expires < moment + l.idle * interval '1 ms';
        END IF;
    END IF;
END $$;

-- After an accept that met others which accepted the same messages: takes its own copies back.
-- A line that it made goes if it holds no message, and else is as if the call had not named them.
CREATE FUNCTION idempotency_mend(
    keys uuid[], lines uuid[], leases bigint[], base bigint, open uuid[], begun uuid[]
) RETURNS void LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    DELETE FROM idempotency_message m
    USING unnest(keys, lines) WITH ORDINALITY AS a (key, line, nth)
    WHERE m.line = ANY (ARRAY[a.line]) AND m.place = ANY (ARRAY[base + a.nth])
        AND a.key <> ALL (open);
    DELETE FROM idempotency_line l
    WHERE l.line = ANY (lines) AND (l.token IS NULL OR l.line = ANY (begun)) AND (
        SELECT true FROM idempotency_message m WHERE m.line = l.line LIMIT 1) IS NULL;
    UPDATE idempotency_line l SET
        token = CASE WHEN f.lease IS NOT NULL THEN l.token END,
        due = clock_timestamp() + coalesce(f.lease, 0) * interval '1 ms'
    FROM (
        SELECT DISTINCT ON (a.line) a.line, a.lease
        FROM unnest(keys, lines, leases) WITH ORDINALITY AS a (key, line, lease, nth)
        WHERE a.key = ANY (open)
        ORDER BY a.line, a.nth) f
    WHERE l.line = ANY (begun) AND l.line = f.line;
END $$;

-- Takes up to `most` turns that are due, those due longest first, and reads the first messages of
-- their lines. Waits for nobody. Without anything due it only reads.
CREATE FUNCTION idempotency_turn(most bigint, messages bigint, lease bigint, room bigint)
RETURNS TABLE (
    line uuid, token bigint, overdue bigint, place bigint, attempt bigint,
    received_at timestamptz, fault text, raw bytea
) LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := clock_timestamp();
    taken uuid[];
    dues timestamptz[];
BEGIN
    SELECT array_agg(d.line), array_agg(d.due) INTO taken, dues FROM (
        SELECT l.line, l.due FROM idempotency_line l WHERE l.due <= moment
        ORDER BY l.due LIMIT most FOR UPDATE SKIP LOCKED) d;
    IF taken IS NULL THEN
        RETURN;
    END IF;
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'local', true);
    END IF;
    UPDATE idempotency_line l SET
        lapses = CASE WHEN l.token IS NULL THEN l.lapses ELSE l.lapses + 1 END,
        token = nextval('idempotency_token'),
        due = moment + lease * interval '1 ms', held = false
    WHERE l.line = ANY (taken);
    -- A later statement: messages that were accepted before the line was locked are seen.
    RETURN QUERY SELECT t.line, l.token,
        (extract(epoch FROM moment - t.due) * 1000000)::bigint,
        r.place, r.attempt, r.received_at, r.fault, r.raw
    FROM unnest(taken, dues) WITH ORDINALITY AS t (line, due, nth)
    CROSS JOIN LATERAL (
        SELECT l.token, l.lapses FROM idempotency_line l WHERE l.line = t.line LIMIT 1) l
    LEFT JOIN LATERAL idempotency_ready(t.line, messages, room, l.lapses, moment) r ON true
    ORDER BY t.nth, r.place;
END $$;

-- Ends messages and turns by line and token, and reads on. Answers the messages that were asked
-- for, and without a place the turns that are not the caller's: for them nothing is changed. A turn
-- that was to read on and got nothing has ended.
--
-- `ends`: done, kept, later, dead, or nothing. `passes`: others may pass a message that is for later.
-- `reads`: how many messages to read on; 0 ends the turn; nothing: it goes on as it is. `leases`:
-- to extend turns, and do nothing else. The caller sorts by line; only the last of several for one
-- turn may end it.
CREATE FUNCTION idempotency_report(
    lines uuid[], tokens bigint[], leases bigint[], places bigint[], ends text[],
    attempts bigint[], faults text[], delays bigint[], passes boolean[], reads bigint[],
    room bigint
) RETURNS TABLE (
    line uuid, token bigint, place bigint, attempt bigint, received_at timestamptz, fault text,
    raw bytea
) LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off
SET lock_timeout = '2s'
AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz;
    held uuid[];
    lapsed boolean;
    lost uuid[];
    lost_tokens bigint[];
    waits uuid[];
    over uuid[];
    more bigint;
    removed bigint;
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'local', true);
    END IF;
    SELECT array_agg(h.line) FILTER (WHERE h.mine), bool_or(h.lapses > 0),
        array_agg(h.line) FILTER (WHERE NOT h.mine), array_agg(h.token) FILTER (WHERE NOT h.mine)
    INTO held, lapsed, lost, lost_tokens FROM (
        SELECT a.line, a.token, l.lapses, l.lapses IS NOT NULL AS mine FROM (
            SELECT DISTINCT a.line, a.token FROM unnest(lines, tokens) AS a (line, token)
            ORDER BY a.line, a.token) a
        LEFT JOIN LATERAL (
            SELECT l.lapses FROM idempotency_line l
            WHERE l.line = a.line AND l.token = a.token LIMIT 1 FOR UPDATE) l ON true) h;
    IF lost IS NOT NULL THEN
        RETURN QUERY SELECT o.line, o.token, NULL::bigint, NULL::bigint, NULL::timestamptz,
            NULL::text, NULL::bytea
        FROM unnest(lost, lost_tokens) AS o (line, token);
        IF held IS NULL THEN
            RETURN;
        END IF;
        -- Other turns than those that are called: nothing more is done about them.
        SELECT array_agg(a.line ORDER BY a.nth), array_agg(a.token ORDER BY a.nth),
            array_agg(a.lease ORDER BY a.nth), array_agg(a.place ORDER BY a.nth),
            array_agg(a.ended ORDER BY a.nth), array_agg(a.attempt ORDER BY a.nth),
            array_agg(a.fault ORDER BY a.nth), array_agg(a.delay ORDER BY a.nth),
            array_agg(a.pass ORDER BY a.nth), array_agg(a.read ORDER BY a.nth)
        INTO lines, tokens, leases, places, ends, attempts, faults, delays, passes, reads
        FROM unnest(lines, tokens, leases, places, ends, attempts, faults, delays, passes, reads)
            WITH ORDINALITY AS a (
            line, token, lease, place, ended, attempt, fault, delay, pass, read, nth)
        CROSS JOIN LATERAL (
            SELECT l.token FROM idempotency_line l WHERE l.line = a.line LIMIT 1) l
        WHERE a.line = ANY (held) AND l.token = a.token;
    END IF;
    moment := clock_timestamp();
    IF leases[1] IS NOT NULL THEN
        UPDATE idempotency_line l SET due = moment + a.lease * interval '1 ms'
        FROM unnest(lines, leases) AS a (line, lease) WHERE l.line = ANY (ARRAY[a.line]);
        RETURN;
    END IF;
    DELETE FROM idempotency_message m USING unnest(lines, places, ends) AS a (line, place, ended)
    WHERE m.line = ANY (ARRAY[a.line]) AND m.place = ANY (ARRAY[a.place]) AND a.ended = 'done';
    IF 'kept' = ANY (ends) THEN
        WITH done AS (
            DELETE FROM idempotency_message m
            USING unnest(lines, places, ends) AS a (line, place, ended)
            WHERE m.line = ANY (ARRAY[a.line]) AND m.place = ANY (ARRAY[a.place])
                AND a.ended = 'kept'
            RETURNING m.key, m.line, m.raw
        ) INSERT INTO idempotency_kept (key, line, raw)
        SELECT d.key, d.line, d.raw FROM done d
        ON CONFLICT (key) DO NOTHING;
    END IF;
    IF 'dead' = ANY (ends) THEN
        WITH died AS (
            DELETE FROM idempotency_message m
            USING unnest(lines, places, ends, attempts, faults)
                AS a (line, place, ended, attempt, fault)
            WHERE m.line = ANY (ARRAY[a.line]) AND m.place = ANY (ARRAY[a.place])
                AND a.ended = 'dead'
            RETURNING m.line, m.key, m.received_at, m.raw, a.attempt, a.fault
        ) INSERT INTO idempotency_dead (line, key, attempts, received_at, died_at, fault, raw)
        SELECT d.line, d.key, d.attempt, d.received_at, moment, d.fault, d.raw FROM died d;
    END IF;
    IF 'later' = ANY (ends) THEN
        UPDATE idempotency_message m SET failures = a.attempt, fault = a.fault,
            due = CASE WHEN a.pass THEN moment + a.delay * interval '1 ms' END
        FROM unnest(lines, places, ends, attempts, faults, delays, passes)
            AS a (line, place, ended, attempt, fault, delay, pass)
        WHERE m.line = ANY (ARRAY[a.line]) AND m.place = ANY (ARRAY[a.place])
            AND a.ended = 'later';
        WITH waiting AS (
            UPDATE idempotency_line l SET token = NULL, held = true, lapses = 0,
                due = moment + a.delay * interval '1 ms'
            FROM unnest(lines, ends, delays, passes) AS a (line, ended, delay, pass)
            WHERE l.line = ANY (ARRAY[a.line]) AND a.ended = 'later' AND NOT a.pass
            RETURNING l.line
        ) SELECT array_agg(w.line) INTO waits FROM waiting w;
        -- The message was forgotten meanwhile.
        DELETE FROM idempotency_line l WHERE l.line = ANY (waits) AND (
            SELECT true FROM idempotency_message m WHERE m.line = l.line LIMIT 1) IS NULL;
    END IF;
    IF lapsed THEN
        UPDATE idempotency_line l SET lapses = 0 WHERE l.lapses > 0 AND l.line = ANY (ARRAY (
            SELECT a.line FROM unnest(lines, ends) AS a (line, ended) WHERE a.ended IS NOT NULL));
    END IF;
    SELECT array_agg(a.line) FILTER (WHERE m.place IS NULL), count(m.place) INTO over, more
    FROM unnest(lines, ends, passes, reads) AS a (line, ended, pass, read)
    LEFT JOIN LATERAL (
        SELECT m.place FROM idempotency_message m
        WHERE a.read > 0 AND m.line = a.line AND (m.due IS NULL OR m.due <= moment)
        ORDER BY m.place LIMIT 1) m ON true
    WHERE a.read IS NOT NULL AND (a.ended = 'later' AND NOT a.pass) IS NOT TRUE;
    IF more > 0 THEN
        RETURN QUERY SELECT a.line, a.token, r.place, r.attempt, r.received_at, r.fault, r.raw
        FROM unnest(lines, tokens, ends, passes, reads) AS a (line, token, ended, pass, read)
        LEFT JOIN LATERAL (
            SELECT l.lapses FROM idempotency_line l
            WHERE a.ended IS NULL AND l.line = a.line LIMIT 1) l ON true
        CROSS JOIN LATERAL idempotency_ready(
            a.line, a.read, room, coalesce(l.lapses, 0)::bigint, moment) r
        WHERE a.read > 0 AND (a.ended = 'later' AND NOT a.pass) IS NOT TRUE;
    END IF;
    IF cardinality(over) > 0 THEN
        DELETE FROM idempotency_line l WHERE l.line = ANY (over) AND (
            SELECT true FROM idempotency_message m WHERE m.line = l.line LIMIT 1) IS NULL;
        GET DIAGNOSTICS removed = ROW_COUNT;
        IF removed < cardinality(over) THEN
            UPDATE idempotency_line l SET token = NULL, held = false, due = coalesce(
                (SELECT moment FROM idempotency_message m
                    WHERE m.line = l.line AND m.due IS NULL LIMIT 1),
                (SELECT min(m.due) FROM idempotency_message m WHERE m.line = l.line))
            WHERE l.line = ANY (over);
        END IF;
    END IF;
END $$;

-- Puts dead messages back, each at the end of its line; answers how many.
CREATE FUNCTION idempotency_redrive(deaths bigint[]) RETURNS bigint
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off
SET lock_timeout = '2s'
AS $$
#variable_conflict use_column
DECLARE
    lines uuid[];
    back uuid[];
    places bigint[];
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'local', true);
    END IF;
    lines := ARRAY (
        SELECT DISTINCT d.line FROM idempotency_dead d WHERE d.death = ANY (deaths)
        ORDER BY d.line);
    INSERT INTO idempotency_line AS l (line, due, lapses, held)
    SELECT a.line, clock_timestamp(), 0, false FROM unnest(lines) AS a (line)
    ON CONFLICT (line) DO UPDATE SET due = clock_timestamp()
    WHERE l.token IS NULL AND NOT l.held AND l.due > clock_timestamp();
    PERFORM FROM idempotency_dead d WHERE d.death = ANY (deaths) ORDER BY d.death FOR UPDATE;
    WITH alive AS (
        DELETE FROM idempotency_dead d WHERE d.death = ANY (deaths) RETURNING d.*
    ), put AS (
        INSERT INTO idempotency_message (line, place, received_at, failures, key, fault, raw)
        SELECT a.line, nextval('idempotency_place') * 65536, a.received_at, 0, a.key, a.fault, a.raw
        FROM (SELECT * FROM alive ORDER BY array_position(deaths, death)) a
        RETURNING key, place
    ) SELECT array_agg(p.key), array_agg(p.place) INTO back, places
    FROM (SELECT * FROM put ORDER BY key) p;
    UPDATE idempotency_seen s SET place = p.place FROM unnest(back, places) AS p (key, place)
    WHERE s.key = ANY (ARRAY[p.key]);
    -- Lines whose dead messages another redrove at the same time, and handled.
    DELETE FROM idempotency_line l WHERE l.line = ANY (lines) AND l.token IS NULL AND (
        SELECT true FROM idempotency_message m WHERE m.line = l.line LIMIT 1) IS NULL;
    RETURN coalesce(cardinality(back), 0);
END $$;

-- Drops dead messages; answers how many.
CREATE FUNCTION idempotency_bury(deaths bigint[]) RETURNS bigint
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off
SET lock_timeout = '2s'
AS $$
DECLARE
    buried bigint;
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'local', true);
    END IF;
    PERFORM FROM idempotency_dead d WHERE d.death = ANY (deaths) ORDER BY d.death FOR UPDATE;
    DELETE FROM idempotency_dead d WHERE d.death = ANY (deaths);
    GET DIAGNOSTICS buried = ROW_COUNT;
    RETURN buried;
END $$;

-- Drops the messages of a line: waiting, dead and kept ones; answers how many. A turn stays.
CREATE FUNCTION idempotency_drop(whose uuid) RETURNS bigint
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off
SET lock_timeout = '2s'
AS $$
DECLARE
    waiting bigint;
    dead bigint;
    kept bigint;
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'local', true);
    END IF;
    PERFORM FROM idempotency_line l WHERE l.line = whose FOR UPDATE;
    DELETE FROM idempotency_message m WHERE m.line = whose;
    GET DIAGNOSTICS waiting = ROW_COUNT;
    DELETE FROM idempotency_line l WHERE l.line = whose AND l.token IS NULL AND (
        SELECT true FROM idempotency_message m WHERE m.line = l.line LIMIT 1) IS NULL;
    PERFORM FROM idempotency_dead d WHERE d.line = whose ORDER BY d.death FOR UPDATE;
    DELETE FROM idempotency_dead d WHERE d.line = whose;
    GET DIAGNOSTICS dead = ROW_COUNT;
    DELETE FROM idempotency_kept k WHERE k.line = whose;
    GET DIAGNOSTICS kept = ROW_COUNT;
    RETURN waiting + dead + kept;
END $$;

-- Removes up to `most` keys of done messages whose retention has ended, and puts off those whose
-- time has not come yet; answers how many it removed, and how many it looked at. Rows that another
-- transaction holds are passed by.
CREATE FUNCTION idempotency_unsee(most bigint) RETURNS TABLE (swept bigint, looked bigint)
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := clock_timestamp();
    past uuid[];
BEGIN
    past := ARRAY (
        SELECT s.key FROM idempotency_seen s WHERE s.expires <= moment
        ORDER BY s.expires LIMIT most FOR UPDATE SKIP LOCKED);
    looked := cardinality(past);
    -- Later statements: they see the messages that were redriven before the rows were locked.
    DELETE FROM idempotency_seen s WHERE s.key = ANY (past)
        AND (SELECT true FROM idempotency_message m
            WHERE m.line = s.line AND m.place = s.place LIMIT 1) IS NULL
        AND (SELECT true FROM idempotency_dead d WHERE d.key = s.key LIMIT 1) IS NULL
        AND (SELECT true FROM idempotency_life l
            WHERE s.idle IS NOT NULL AND l.line = s.line AND l.expires > moment LIMIT 1) IS NULL;
    GET DIAGNOSTICS swept = ROW_COUNT;
    DELETE FROM idempotency_kept k WHERE k.key = ANY (past) AND (
        SELECT true FROM idempotency_seen s WHERE s.key = k.key LIMIT 1) IS NULL;
    IF swept < looked THEN
        UPDATE idempotency_seen s SET expires = coalesce(
            (SELECT l.expires FROM idempotency_life l
                WHERE s.idle IS NOT NULL AND l.line = s.line AND l.expires > moment LIMIT 1),
            moment + greatest(interval '1 minute', (moment - s.at) / 8))
        WHERE s.key = ANY (past);
    END IF;
    DELETE FROM idempotency_life l WHERE l.line = ANY (ARRAY (
        SELECT l.line FROM idempotency_life l WHERE l.expires <= moment
        ORDER BY l.expires LIMIT most FOR UPDATE SKIP LOCKED));
    RETURN NEXT;
END $$;
