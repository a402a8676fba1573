/**
 * The rules of the operations, as functions on rows that `run_v1` has locked. `_keys` are the keys
 * of the operation's resources.
 */
export const functionsSql = `
-- Offers a free lock to the first waiter in its queue, for a moment. Then the next one may come.
CREATE OR REPLACE FUNCTION {schema}.offer_v1(_key bytea) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
  _front {schema}.queue;
BEGIN
  SELECT * INTO _front FROM {schema}.queue q
    WHERE q.key = _key AND q.lapses > clock_timestamp() ORDER BY q.ticket LIMIT 1;
  IF NOT FOUND THEN RETURN; END IF;
  -- A waiter without notifications polls, so it gets longer.
  UPDATE {schema}.queue q SET lapses = least(q.lapses, clock_timestamp() +
      CASE WHEN _front.channel IS NULL THEN interval '300 ms' ELSE interval '150 ms' END)
    WHERE q.key = _key AND q.ticket = _front.ticket;
  IF _front.channel IS NOT NULL THEN PERFORM pg_notify(_front.channel, _front.number); END IF;
END $holdfast$;

-- Locks every resource, or none. A waiting attempt that is refused gets an entry in the queue.
CREATE OR REPLACE FUNCTION {schema}.acquire_v1(_keys bytea[], _operation jsonb) RETURNS jsonb
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
  _now timestamptz := clock_timestamp();
  _wait jsonb := _operation->'wait';
  _ticket bigint := (_wait->>'ticket')::bigint;
  _fence bigint;
  _holder {schema}.locks;
  _front {schema}.queue;
  _left interval;
  _rank int;
BEGIN
  SELECT * INTO _holder FROM {schema}.locks l
    WHERE l.key = ANY (_keys) AND l.owner IS NOT NULL AND l.expires > _now
    ORDER BY l.expires DESC LIMIT 1;
  -- An attempt for several resources has no place in a queue, and does not respect one.
  IF _holder.key IS NULL AND cardinality(_keys) = 1 THEN
    SELECT * INTO _front FROM {schema}.queue q
      WHERE q.key = _keys[1] AND q.lapses > _now AND (_ticket IS NULL OR q.ticket < _ticket)
      ORDER BY q.ticket LIMIT 1;
  END IF;
  IF _holder.key IS NULL AND _front.key IS NULL THEN
    _fence := nextval('{schema}.fences');
    UPDATE {schema}.locks l SET owner = _operation->>'owner', fence = _fence,
      reserved = coalesce((_wait->>'fences')::int, 1) - 1, used = clock_timestamp(),
      expires = clock_timestamp() + (_operation->>'ttl')::int * interval '1 millisecond'
      WHERE l.key = ANY (_keys);
    IF _ticket IS NOT NULL THEN
      DELETE FROM {schema}.queue q WHERE q.key = _keys[1] AND q.ticket = _ticket;
    END IF;
    RETURN jsonb_build_object('is', 'granted', 'fence', _fence::text);
  END IF;
  _left := _holder.expires - _now;
  IF _front.key IS NOT NULL THEN
    -- Free, but reserved. Without an offer so far (the lease of the holder expired): offer it now.
    _left := least(_front.lapses - _now, interval '300 ms');
    IF _front.lapses - _now > interval '300 ms' THEN PERFORM {schema}.offer_v1(_keys[1]); END IF;
  END IF;
  IF _wait IS NOT NULL AND cardinality(_keys) = 1 THEN
    _ticket := coalesce(_ticket, nextval('{schema}.tickets'));
    INSERT INTO {schema}.queue AS q (key, ticket, channel, number, lapses)
      VALUES (_keys[1], _ticket, _wait->>'channel', _wait->>'number',
        clock_timestamp() + interval '8 seconds')
      ON CONFLICT (key, ticket) DO UPDATE
        SET lapses = excluded.lapses, channel = excluded.channel;
    SELECT count(*) INTO _rank FROM {schema}.queue q
      WHERE q.key = _keys[1] AND q.ticket < _ticket AND q.lapses > _now;
  END IF;
  RETURN jsonb_build_object('is', 'held', 'owner', _holder.owner,
    'fence', (_holder.fence + _holder.reserved)::text,
    'left', extract(epoch FROM _left) * 1000, 'ticket', _ticket::text, 'rank', _rank);
END $holdfast$;

-- Frees what the owner has. Never touches the lock of a later owner.
CREATE OR REPLACE FUNCTION {schema}.release_v1(_keys bytea[], _operation jsonb) RETURNS jsonb
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
  _key bytea;
  _is_live boolean;
  _had int := 0;
BEGIN
  FOR _key, _is_live IN
    UPDATE {schema}.locks l SET owner = NULL
      WHERE l.key = ANY (_keys) AND l.owner = _operation->>'owner'
      RETURNING l.key, l.expires > clock_timestamp()
  LOOP
    IF _is_live THEN _had := _had + 1; END IF;
    PERFORM {schema}.offer_v1(_key);
  END LOOP;
  RETURN jsonb_build_object('is',
    CASE WHEN _had = cardinality(_keys) THEN 'released' ELSE 'gone' END);
END $holdfast$;

-- Gives what the owner has more time, never less.
CREATE OR REPLACE FUNCTION {schema}.extend_v1(_keys bytea[], _operation jsonb) RETURNS jsonb
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $holdfast$
BEGIN
  IF {schema}.count_v1(_keys, _operation->>'owner') < cardinality(_keys) THEN
    RETURN '{"is": "gone"}';
  END IF;
  UPDATE {schema}.locks l SET expires = greatest(l.expires,
      clock_timestamp() + (_operation->>'ttl')::int * interval '1 millisecond')
    WHERE l.key = ANY (_keys);
  RETURN '{"is": "extended"}';
END $holdfast$;

-- Returns how many of the resources the owner has.
CREATE OR REPLACE FUNCTION {schema}.count_v1(_keys bytea[], _owner text) RETURNS int
LANGUAGE sql VOLATILE AS $holdfast$
  SELECT count(*)::int FROM {schema}.locks l
  WHERE l.key = ANY (_keys) AND l.owner = _owner AND l.expires > pg_catalog.clock_timestamp()
$holdfast$;

-- Removes the entry of a waiter, and passes an offer that it may have had to the next one.
CREATE OR REPLACE FUNCTION {schema}.leave_v1(_keys bytea[], _operation jsonb) RETURNS jsonb
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $holdfast$
BEGIN
  DELETE FROM {schema}.queue q WHERE q.key = _keys[1] AND
    (q.ticket = (_operation->>'ticket')::bigint OR q.lapses < clock_timestamp());
  IF NOT EXISTS (SELECT 1 FROM {schema}.locks l
      WHERE l.key = _keys[1] AND l.owner IS NOT NULL AND l.expires > clock_timestamp()) THEN
    PERFORM {schema}.offer_v1(_keys[1]);
  END IF;
  RETURN '{"is": "left"}';
END $holdfast$;

CREATE OR REPLACE FUNCTION {schema}.inspect_v1(_keys bytea[]) RETURNS jsonb
LANGUAGE sql VOLATILE AS $holdfast$
  SELECT jsonb_build_object('is', CASE WHEN l.key IS NULL THEN 'free' ELSE 'held' END,
    'owner', l.owner, 'fence', (l.fence + l.reserved)::text,
    'left', extract(epoch FROM l.expires - pg_catalog.clock_timestamp()) * 1000,
    'waiters', (SELECT count(*) FROM {schema}.queue q
      WHERE q.key = _keys[1] AND q.lapses > pg_catalog.clock_timestamp()))
  FROM (SELECT 1) AS always LEFT JOIN {schema}.locks l
    ON l.key = _keys[1] AND l.owner IS NOT NULL AND l.expires > pg_catalog.clock_timestamp()
$holdfast$;

-- Returns all held locks.
CREATE OR REPLACE FUNCTION {schema}.list_v1() RETURNS jsonb
LANGUAGE sql VOLATILE AS $holdfast$
  SELECT coalesce(jsonb_agg(jsonb_build_object('name', encode(l.name, 'base64'),
    'owner', l.owner, 'fence', (l.fence + l.reserved)::text,
    'left', extract(epoch FROM l.expires - pg_catalog.clock_timestamp()) * 1000)), '[]'::jsonb)
  FROM {schema}.locks l WHERE l.owner IS NOT NULL AND l.expires > pg_catalog.clock_timestamp()
$holdfast$;
`;
