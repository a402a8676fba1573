/**
 * Tables, sequences and the functions that read the identity of the server. `{schema}` stands for
 * the quoted name of the schema.
 *
 * A row of a free lock stays in its table: an acquire and a release are then one update in place
 * each (hot updates, so the index does not grow). `sweep_v1` deletes rows that were free for long.
 *
 * Fences come from a sequence. `nextval` is called only for a row that is locked, so the fences of
 * one resource grow in the order of its holders, also after its row was swept away. The sequence
 * stays at or above the server's clock, in microseconds since 1970, as the fences of Redis do.
 */
export const tablesSql = `
CREATE SCHEMA IF NOT EXISTS {schema};

-- Steps of 32: a manager may hand a lock over among its own calls, each with a fence of its own.
CREATE SEQUENCE IF NOT EXISTS {schema}.fences INCREMENT BY 32 START WITH 32;
CREATE SEQUENCE IF NOT EXISTS {schema}.tickets;

CREATE TABLE IF NOT EXISTS {schema}.locks (
  -- SHA-256 of the name
  key bytea PRIMARY KEY,
  name bytea NOT NULL,
  -- NULL: free
  owner text COLLATE "C",
  fence bigint NOT NULL DEFAULT 0,
  -- number of fences after \`fence\` that belong to the same grant
  reserved int NOT NULL DEFAULT 0,
  expires timestamptz NOT NULL DEFAULT '-infinity',
  used timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (
  fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000
);

CREATE TABLE IF NOT EXISTS {schema}.queue (
  key bytea NOT NULL,
  ticket bigint NOT NULL,
  -- NULL: the waiter receives no notifications
  channel text,
  number text NOT NULL,
  lapses timestamptz NOT NULL,
  PRIMARY KEY (key, ticket)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- The server that granted last. Another timeline, start or cluster: a failover, restart or restore.
CREATE TABLE IF NOT EXISTS {schema}.server (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  cluster bigint NOT NULL DEFAULT 0,
  timeline bigint NOT NULL DEFAULT 0,
  started timestamptz NOT NULL DEFAULT '-infinity',
  generation bigint NOT NULL DEFAULT 0
);
INSERT INTO {schema}.server DEFAULT VALUES ON CONFLICT DO NOTHING;
`;

/**
 * Functions about the identity of the server. Some hosted kinds of Postgres do not allow to read
 * the timeline or the cluster: these functions then return 0, and the doctor reports that.
 */
export const identitySql = `
DO $holdfast$
BEGIN
  PERFORM pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn());
  CREATE OR REPLACE FUNCTION {schema}.timeline_v1() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT ('x' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 8))
      ::bit(32)::bigint
  $$;
EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_function THEN
  CREATE OR REPLACE FUNCTION {schema}.timeline_v1() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT 0::bigint
  $$;
END $holdfast$;

DO $holdfast$
BEGIN
  PERFORM system_identifier FROM pg_catalog.pg_control_system();
  CREATE OR REPLACE FUNCTION {schema}.cluster_v1() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT system_identifier FROM pg_catalog.pg_control_system()
  $$;
EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_function THEN
  CREATE OR REPLACE FUNCTION {schema}.cluster_v1() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT 0::bigint
  $$;
END $holdfast$;

CREATE OR REPLACE FUNCTION {schema}.clock_us_v1() RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT floor(extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint
$$;

-- Returns the generation of this server; NULL if the row is of another server: call enter_v1.
CREATE OR REPLACE FUNCTION {schema}.generation_v1() RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT generation FROM {schema}.server
  WHERE started = pg_catalog.pg_postmaster_start_time() AND timeline = {schema}.timeline_v1()
$$;

-- Begins a new generation if this server is not the one that granted last. A failover or a restore
-- may have lost the latest grants with their fences. The sequence therefore goes up to the clock,
-- and on by a jump: 2^32 fences (71 minutes of the clock), or 2^26 (67 s) after a plain restart.
-- A call of its own: setval outlives a rollback, so a failure after it would repeat the jump.
CREATE OR REPLACE FUNCTION {schema}.enter_v1() RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
  _seen {schema}.server;
  _cluster bigint := {schema}.cluster_v1();
  _timeline bigint := {schema}.timeline_v1();
  _last bigint;
  _jump bigint := 4294967296;
BEGIN
  PERFORM set_config('synchronous_commit', 'on', true)
    WHERE current_setting('synchronous_commit') = 'off';
  SELECT * INTO _seen FROM {schema}.server FOR UPDATE;
  IF _seen.started = pg_postmaster_start_time() AND _seen.timeline = _timeline THEN
    RETURN _seen.generation;
  END IF;
  IF _seen.cluster = _cluster AND _seen.timeline = _timeline THEN _jump := 67108864; END IF;
  SELECT last_value INTO _last FROM {schema}.fences;
  PERFORM setval('{schema}.fences', greatest(_last, {schema}.clock_us_v1()) + _jump);
  UPDATE {schema}.server SET cluster = _cluster, timeline = _timeline,
    started = pg_postmaster_start_time(), generation = _seen.generation + 1;
  RETURN _seen.generation + 1;
END $holdfast$;

-- Raises the sequence to a minute above the clock if it is below the clock. The lock makes setval
-- safe: nextval of others cannot reach the new value meanwhile.
CREATE OR REPLACE FUNCTION {schema}.raise_fences_v1() RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
  _last bigint;
BEGIN
  SELECT last_value INTO _last FROM {schema}.fences;
  IF _last >= {schema}.clock_us_v1() THEN RETURN; END IF;
  PERFORM 1 FROM {schema}.server FOR UPDATE;
  SELECT last_value INTO _last FROM {schema}.fences;
  IF _last >= {schema}.clock_us_v1() THEN RETURN; END IF;
  PERFORM setval('{schema}.fences', {schema}.clock_us_v1() + 60000000);
END $holdfast$;
`;
