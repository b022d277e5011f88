-- One batch of the ledger as one statement. False: something is not as the caller believed, and nothing was done.
--
-- What the caller stood on is compared under locks, taken in the order that everybody keeps: reservations, then
-- windows (all are made before one is locked), each by its key. Each statement sees what was committed before it
-- began, and so all that was waited for. Names that begin with _ are the caller's: what he believed, then the rows
-- to write (metering_proxy/ledger/posting.py).
--
-- Rows are always found by their keys. A plan is made once a connection, perhaps while the tables are empty, and
-- would go on reading them whole when they are not. It is kept: left to choose, PostgreSQL plans anew for each
-- length of the arrays.
CREATE FUNCTION ledger_post(
    _now_at bigint, _off_ms bigint, _until_at bigint,
    _running text[],
    _account text[], _kind text[], _start_at bigint[],
    _was_spent bigint[], _was_held bigint[], _spent bigint[], _held bigint[],
    _counted text[], _calls bigint[],
    _ended text[], _state text[],
    _renewed text[], _seen bigint[],
    _made json, _rerouted json, _entries json, _marks json
) RETURNS boolean LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    IF abs(_now_at - extract(epoch FROM clock_timestamp()) * 1000) > _off_ms THEN
        RETURN false;
    END IF;

    IF cardinality(_running) + cardinality(_renewed) > 0 AND cardinality(_running) > (
        SELECT count(*) FILTER (WHERE request_id = ANY (_running)) FROM (
            SELECT request_id FROM reservation
            WHERE request_id = ANY (_running || _renewed) AND state = 'dispatched'
            ORDER BY request_id FOR UPDATE
        ) AS locked
    ) THEN
        RETURN false;
    END IF;

    IF 0 = ANY (_was_spent) THEN
        INSERT INTO account_window (account, kind, start_at, spent, held)
            SELECT account, kind, start_at, 0, 0
            FROM unnest(_account, _kind, _start_at, _was_spent, _was_held)
                AS believed (account, kind, start_at, spent, held)
            WHERE spent = 0 AND held = 0
            ON CONFLICT DO NOTHING;
    END IF;
    IF cardinality(_account) > (
        SELECT count(*) FROM (
            SELECT FROM account_window AS w
            JOIN unnest(_account, _kind, _start_at, _was_spent, _was_held)
                AS believed (account, kind, start_at, spent, held)
                USING (account, kind, start_at, spent, held)
            ORDER BY w.account, w.kind, w.start_at FOR UPDATE OF w
        ) AS locked
    ) THEN
        RETURN false;
    END IF;

    IF cardinality(_counted) > 0 AND EXISTS (
        SELECT FROM unnest(_counted, _calls) AS believed (account, calls)
        WHERE calls <> (
            SELECT count(*) FROM reservation AS r
            WHERE r.account = believed.account AND state = 'dispatched' AND lease_until_at > _now_at
        )
    ) THEN
        RETURN false;
    END IF;

    UPDATE account_window AS w SET spent = m.spent, held = m.held
        FROM unnest(_account, _kind, _start_at, _was_spent, _was_held, _spent, _held)
            AS m (account, kind, start_at, was_spent, was_held, spent, held)
        WHERE (w.account, w.kind, w.start_at) = (m.account, m.kind, m.start_at)
            AND (m.spent, m.held) <> (m.was_spent, m.was_held);
    IF _made IS NOT NULL THEN
        INSERT INTO reservation SELECT * FROM json_populate_recordset(NULL::reservation, _made);
    END IF;
    IF _rerouted IS NOT NULL THEN
        UPDATE reservation AS r SET
            attempt = m.attempt, provider = m.provider, model = m.model, price_id = m.price_id,
            input_tokens = m.input_tokens, input_cost_nanos = m.input_cost_nanos,
            output_rate_nanos = m.output_rate_nanos
            FROM json_populate_recordset(NULL::reservation, _rerouted) AS m
            WHERE r.request_id = m.request_id;
    END IF;
    IF cardinality(_renewed) > 0 THEN
        UPDATE reservation AS r SET lease_until_at = _until_at, output_seen = m.seen
            FROM unnest(_renewed, _seen) AS m (request_id, seen)
            WHERE r.request_id = m.request_id AND r.state = 'dispatched';
    END IF;
    IF cardinality(_ended) > 0 THEN
        UPDATE reservation AS r SET state = m.state, ended_at = _now_at
            FROM unnest(_ended, _state) AS m (request_id, state)
            WHERE r.request_id = m.request_id;
    END IF;
    IF _entries IS NOT NULL THEN
        INSERT INTO entry SELECT * FROM json_populate_recordset(NULL::entry, _entries);
    END IF;
    IF _marks IS NOT NULL THEN
        INSERT INTO mark SELECT * FROM json_populate_recordset(NULL::mark, _marks)
            ON CONFLICT DO NOTHING;
    END IF;
    RETURN true;
END $$;
