import type { Pool } from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { Locks } from "../../src/index.ts";
import { grantSql, migrate } from "../../src/stores/postgres/index.ts";
import { freePort } from "../../tools/network/free-port.mjs";
import { type Pooler, startPgbouncer } from "../../tools/databases/pgbouncer.mjs";
import { type PostgresServer, startPostgres } from "../../tools/databases/postgres.mjs";
import { watchLeaks } from "../support/leaks.ts";
import { PostgresClients } from "./postgres-locks.ts";

let server: PostgresServer;
let copy: PostgresServer;
let pooler: Pooler;
const clients = new PostgresClients();

watchLeaks();

beforeAll(async () => {
  // A copy is made by replication, which a server without durability does as well.
  server = await startPostgres(["fsync=on", "synchronous_commit=on"]);
  const pool = clients.pool(server);
  await migrate(pool);
  await clients.close();
  copy = await server.copy();
  pooler = await startPgbouncer(server);
});

afterEach(() => clients.close());
afterAll(async () => {
  await pooler.stop();
  await copy.stop();
  await server.stop();
});

async function codesOf(locks: Locks): Promise<readonly string[]> {
  return (await locks.doctor()).map(({ level, code }) => `${level} ${code}`);
}

/** A pool whose sessions begin with these settings. */
function poolWith(options: string): Pool {
  return clients.pool({ url: `${server.url}?options=${encodeURIComponent(options)}` });
}

test("finds nothing on a server that is well", async () => {
  expect(await codesOf(clients.locks(clients.pool(server)))).toEqual([]);
});

test("names the schema that is missing, and what to run", async () => {
  const locks = clients.locks(clients.pool(server), { schema: "elsewhere" });
  const [finding, ...more] = await locks.doctor();
  expect(more).toEqual([]);
  expect(finding).toMatchObject({ level: "error", code: "schema-missing", node: "postgres" });
  expect(finding?.remedy).toContain("migrate(pool)");
});

test("names the right that is missing, and the statement to run", async () => {
  const admin = clients.pool(server);
  await admin.query("CREATE ROLE reader LOGIN");
  const url = server.url.replace("holdfast@", "reader@");
  const locks = clients.locks(clients.pool({ url }));
  const [finding] = await locks.doctor();
  expect(finding).toMatchObject({ level: "error", code: "permission-missing" });
  expect(finding?.what).toBe('the user reader lacks USAGE on the schema "holdfast"');
  expect(finding?.remedy).toContain('grantSql("reader")');
  await admin.query(grantSql("reader"));
  await admin.query("REVOKE UPDATE ON holdfast.locks FROM reader");
  await admin.query("REVOKE USAGE ON SEQUENCE holdfast.tickets FROM reader");
  const [other] = await locks.doctor();
  expect(other?.what).toBe(
    'the user reader lacks a right on locks, tickets in the schema "holdfast"',
  );
  await admin.query(grantSql("reader"));
  expect(await codesOf(locks)).toEqual([]);
});

test("finds a standby, a read-only session and one that is not there", async () => {
  expect(await codesOf(clients.locks(clients.pool(copy)))).toEqual(["error replica"]);
  const readOnly = poolWith("-c default_transaction_read_only=on");
  expect(await codesOf(clients.locks(readOnly))).toEqual(["error writes-refused"]);
  const url = `postgres://holdfast@127.0.0.1:${await freePort()}/postgres`;
  expect(await codesOf(clients.locks(clients.pool({ url })))).toEqual(["error unreachable"]);
  const unknown = server.url.replace("holdfast@", "unknown@");
  const refused = clients.locks(clients.pool({ url: unknown }));
  expect(await codesOf(refused)).toEqual(["error unauthenticated"]);
});

test("finds settings under which grants may be forgotten, or attempts fail", async () => {
  const isolated = poolWith("-c default_transaction_isolation=serializable");
  expect(await codesOf(clients.locks(isolated))).toEqual(["warning isolation"]);
  const admin = clients.pool(server);
  await admin.query("ALTER SYSTEM SET synchronous_standby_names = 'nowhere'");
  await admin.query("SELECT pg_reload_conf()");
  try {
    const local = poolWith("-c synchronous_commit=local");
    const show = "SELECT current_setting('synchronous_standby_names') AS names";
    const read = async (): Promise<unknown> => (await local.query<{ names: string }>(show)).rows;
    while (JSON.stringify(await read()) !== '[{"names":"nowhere"}]') {
      await local.query("SELECT pg_sleep(0.02)");
    }
    expect(await codesOf(clients.locks(local))).toEqual(["warning standbys-skipped"]);
  } finally {
    await admin.query("ALTER SYSTEM RESET synchronous_standby_names");
    await admin.query("SELECT pg_reload_conf()");
  }
});

test("finds fences that are far ahead of the clock", async () => {
  const pool = clients.pool(server);
  await migrate(pool, { schema: "ahead" });
  const locks = clients.locks(pool, { schema: "ahead" });
  await locks.acquire("a");
  expect(await codesOf(locks)).toEqual([]);
  await pool.query("SELECT setval('ahead.fences', ahead.clock_us_v1() + 50000000000)");
  expect(await codesOf(locks)).toEqual(["warning fences-ahead"]);
});

test("finds a pooler that loses notifications", async () => {
  const locks = clients.locks(clients.pool(pooler), { timeout: 500 });
  expect(await codesOf(locks)).toEqual(["warning no-wake-ups"]);
  const polling = clients.locks(clients.pool(pooler), { listen: false });
  expect(await codesOf(polling)).toEqual([]);
});

test("a server without durability is a warning", async () => {
  const careless = await startPostgres();
  try {
    const pool = clients.pool(careless);
    await migrate(pool);
    expect(await codesOf(clients.locks(pool))).toEqual(["warning persistence-off"]);
  } finally {
    await clients.close();
    await careless.stop();
  }
});
