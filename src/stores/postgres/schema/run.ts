/**
 * `run_v1`: the one statement that the store sends. It runs a list of operations in one
 * transaction, so that many calls of one moment share one commit.
 *
 * Deadlocks are excluded by the order of row locks. A lone operation waits for its rows, in the
 * order of their keys, for half a second at most. A list never waits for a row: an operation whose
 * row is just being changed is reported as `busy`, and the client sends it alone.
 *
 * An extension takes the weaker lock NO KEY UPDATE. A user's transaction that has checked a lease
 * holds its row with KEY SHARE (`check_v1`): then the lease can be renewed, but the lock can
 * neither be released nor change hands until that transaction ends.
 */
export const runSql = `
-- Creates and locks the rows that the operations change. Returns the keys that are locked.
CREATE OR REPLACE FUNCTION {schema}.lock_rows_v1(_operations jsonb) RETURNS bytea[]
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
  _change bytea[];
  _extend bytea[];
  _changed bytea[];
  _extended bytea[];
BEGIN
  INSERT INTO {schema}.locks (key, name)
    SELECT DISTINCT ON (sha256(w.name)) sha256(w.name), w.name
    FROM (SELECT decode(n.value, 'base64') AS name
      FROM jsonb_array_elements(_operations) AS o, jsonb_array_elements_text(o->'names') AS n
      WHERE o->>'do' = 'acquire') AS w
    WHERE NOT EXISTS (SELECT 1 FROM {schema}.locks l WHERE l.key = sha256(w.name))
    ORDER BY 1 ON CONFLICT DO NOTHING;
  SELECT array_agg(DISTINCT w.key) FILTER (WHERE w.what IN ('acquire', 'release', 'leave')),
      array_agg(DISTINCT w.key) FILTER (WHERE w.what = 'extend')
    INTO _change, _extend
    FROM (SELECT o->>'do' AS what, sha256(decode(n.value, 'base64')) AS key
      FROM jsonb_array_elements(_operations) AS o, jsonb_array_elements_text(o->'names') AS n) AS w;
  IF jsonb_array_length(_operations) = 1 THEN
    SELECT array_agg(r.key) INTO _changed FROM (SELECT l.key FROM {schema}.locks l
      WHERE l.key = ANY (_change) ORDER BY l.key FOR UPDATE) AS r;
    SELECT array_agg(r.key) INTO _extended FROM (SELECT l.key FROM {schema}.locks l
      WHERE l.key = ANY (_extend) ORDER BY l.key FOR NO KEY UPDATE) AS r;
  ELSE
    SELECT array_agg(r.key) INTO _changed FROM (SELECT l.key FROM {schema}.locks l
      WHERE l.key = ANY (_change) FOR UPDATE SKIP LOCKED) AS r;
    SELECT array_agg(r.key) INTO _extended FROM (SELECT l.key FROM {schema}.locks l
      WHERE l.key = ANY (_extend) FOR NO KEY UPDATE SKIP LOCKED) AS r;
  END IF;
  RETURN coalesce(_changed, '{}') || coalesce(_extended, '{}');
END $holdfast$;

-- Runs one operation. "busy": a row of it could not be locked at once.
CREATE OR REPLACE FUNCTION {schema}.run_one_v1(_operation jsonb, _locked bytea[]) RETURNS jsonb
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
  _do text := _operation->>'do';
  _keys bytea[];
BEGIN
  SELECT array_agg(sha256(decode(n.value, 'base64'))) INTO _keys
    FROM jsonb_array_elements_text(_operation->'names') AS n;
  IF _do = 'inspect' THEN RETURN {schema}.inspect_v1(_keys); END IF;
  IF _do = 'prove' THEN
    RETURN jsonb_build_object('is',
      CASE {schema}.count_v1(_keys, _operation->>'owner') WHEN cardinality(_keys)
        THEN 'proven' ELSE 'gone' END);
  END IF;
  IF NOT _keys <@ _locked AND (_do = 'acquire' OR EXISTS (SELECT 1 FROM {schema}.locks l
      WHERE l.key = ANY (_keys) AND l.key <> ALL (_locked))) THEN
    RETURN '{"is": "busy"}';
  END IF;
  CASE _do
    WHEN 'acquire' THEN RETURN {schema}.acquire_v1(_keys, _operation);
    WHEN 'release' THEN RETURN {schema}.release_v1(_keys, _operation);
    WHEN 'extend' THEN RETURN {schema}.extend_v1(_keys, _operation);
    WHEN 'leave' THEN RETURN {schema}.leave_v1(_keys, _operation);
  END CASE;
END $holdfast$;

-- Returns NULL, and does nothing, if enter_v1 must be called first.
CREATE OR REPLACE FUNCTION {schema}.run_v1(_operations jsonb) RETURNS jsonb
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms' AS $holdfast$
DECLARE
  _generation bigint := {schema}.generation_v1();
  _locked bytea[];
  _operation jsonb;
  _results jsonb := '[]';
BEGIN
  IF _generation IS NULL THEN RETURN NULL; END IF;
  -- A grant that a crash of the server may forget is none.
  PERFORM set_config('synchronous_commit', 'on', true)
    WHERE current_setting('synchronous_commit') = 'off';
  IF jsonb_path_exists(_operations, '$[*] ? (@.do == "acquire")') THEN
    PERFORM {schema}.raise_fences_v1();
  END IF;
  _locked := {schema}.lock_rows_v1(_operations);
  FOR _operation IN SELECT o.value FROM jsonb_array_elements(_operations) AS o LOOP
    _results := _results || jsonb_build_array({schema}.run_one_v1(_operation, _locked));
  END LOOP;
  RETURN jsonb_build_object('generation', _generation::text,
    'ms', extract(epoch FROM clock_timestamp()) * 1000, 'results', _results);
END $holdfast$;

-- True if the lease still has all its resources. They cannot change hands until the end of the
-- caller's transaction.
CREATE OR REPLACE FUNCTION {schema}.check_v1(_names jsonb, _fence bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
  _held int;
BEGIN
  SELECT count(*) INTO _held FROM (SELECT 1 FROM {schema}.locks l
    WHERE l.key IN (SELECT sha256(decode(n.value, 'base64'))
        FROM jsonb_array_elements_text(_names) AS n)
      AND l.owner IS NOT NULL AND l.expires > clock_timestamp()
      AND _fence BETWEEN l.fence AND l.fence + l.reserved
    ORDER BY l.key FOR KEY SHARE) AS r;
  RETURN _held = jsonb_array_length(_names);
END $holdfast$;

-- Deletes rows of locks that were free for a while, up to a limit. Returns their number.
CREATE OR REPLACE FUNCTION {schema}.sweep_v1(_idle interval, _limit int) RETURNS int
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
  _swept int;
BEGIN
  DELETE FROM {schema}.locks l WHERE l.key IN (SELECT f.key FROM {schema}.locks f
    WHERE greatest(f.used, CASE WHEN f.owner IS NULL THEN f.used ELSE f.expires END)
        < clock_timestamp() - _idle
      AND (f.owner IS NULL OR f.expires < clock_timestamp())
    LIMIT _limit FOR UPDATE SKIP LOCKED);
  GET DIAGNOSTICS _swept = ROW_COUNT;
  DELETE FROM {schema}.queue q WHERE q.lapses < clock_timestamp() - interval '1 minute';
  RETURN _swept;
END $holdfast$;
`;
