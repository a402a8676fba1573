import { Pool } from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import {
  grantSql,
  migrate,
  migrationSql,
  postgres,
  type PostgresQuery,
} from "../../src/stores/postgres/index.ts";
import { createLocks } from "../../src/index.ts";
import { watchLeaks } from "../support/leaks.ts";
import { type PostgresServer, startPostgres } from "../../tools/databases/postgres.mjs";
import { freePort } from "../../tools/network/free-port.mjs";
import { PostgresClients } from "./postgres-locks.ts";

let server: PostgresServer;
const clients = new PostgresClients();

watchLeaks();

beforeAll(async () => {
  server = await startPostgres();
});

afterEach(() => clients.close());
afterAll(() => server.stop());

const wait = "5s";

test("a missing schema is an error that says what to run", async () => {
  const locks = clients.locks(clients.pool(server), { schema: "missing" });
  const error = await locks.acquire("a", { wait }).catch((cause: unknown) => cause);
  expect(error).toMatchObject({ code: "STORE", fault: "schema" });
  expect(String(error)).toContain('the schema "missing" of the locks is missing');
  expect(String(error)).toContain("migrate(pool)");
  await expect(locks.inspect("a")).rejects.toMatchObject({ fault: "schema" });
  await expect(locks.list()).rejects.toMatchObject({ fault: "schema" });
});

test("an older schema is an error that says what to run", async () => {
  const pool = clients.pool(server);
  await migrate(pool, { schema: "older" });
  await pool.query("DROP FUNCTION older.run_v1");
  const locks = clients.locks(pool, { schema: "older" });
  await expect(locks.acquire("a", { wait })).rejects.toMatchObject({ fault: "schema" });
  await migrate(pool, { schema: "older" });
  expect((await locks.acquire("a", { wait })).state).toBe("held");
});

test("the SQL for a migration tool can run again while a lock is held", async () => {
  const pool = clients.pool(server);
  const sql = migrationSql({ schema: "by_tool" });
  await pool.query(sql);
  const lease = await clients.locks(pool, { schema: "by_tool" }).acquire("a");
  await pool.query(sql);
  expect(await lease.prove()).toBe(true);
});

test("processes can migrate at the same time", async () => {
  const pool = clients.pool(server, 8);
  const schema = "at_once";
  await Promise.all(Array.from({ length: 8 }, () => migrate(pool, { schema })));
  await clients.locks(pool, { schema }).acquire("a");
});

test("a user without rights gets an error that names the statement to run", async () => {
  const admin = clients.pool(server);
  await migrate(admin, { schema: "rights" });
  await admin.query("CREATE ROLE guest LOGIN");
  const url = server.url.replace("holdfast@", "guest@");
  const locks = clients.locks(clients.pool({ url }), { schema: "rights" });
  const refused = locks.acquire("a", { wait });
  await expect(refused).rejects.toMatchObject({ code: "STORE", fault: "rights" });
  await expect(refused).rejects.toThrow("grantSql(user)");
  await admin.query(grantSql("guest", { schema: "rights" }));
  const lease = await locks.acquire("a", { wait });
  await lease.extend();
  expect(await lease.release()).toEqual({ released: true });
  await expect(migrate(clients.pool({ url }), { schema: "rights" })).rejects.toMatchObject({
    code: "42501",
  });
});

test("an unknown user or database is an error at once", async () => {
  for (const url of [
    server.url.replace("holdfast@", "unknown@"),
    server.url.replace(/postgres$/, "unknown"),
  ]) {
    const locks = clients.locks(clients.pool({ url }));
    await expect(locks.acquire("a", { wait })).rejects.toMatchObject({
      code: "STORE",
      fault: "credentials",
    });
  }
});

test("a server that cannot be reached is an error after the wait, without anything left", async () => {
  const url = `postgres://holdfast@127.0.0.1:${await freePort()}/postgres`;
  const locks = clients.locks(clients.pool({ url }));
  await expect(locks.tryAcquire("a")).rejects.toMatchObject({
    code: "STORE",
    fault: "unreachable",
  });
  await expect(locks.acquire("a", { wait: 200 })).rejects.toMatchObject({ fault: "unreachable" });
  await expect(locks.acquire("a", { wait: 0 })).rejects.toThrow("ECONNREFUSED");
});

test("a server that is too old is refused by its version", async () => {
  const pool = clients.pool(server);
  const asIfOld: PostgresQuery = (text, params) =>
    text.includes("server_version_num")
      ? Promise.resolve([{ version: "90624" }])
      : pool.query(text, params);
  await expect(migrate(asIfOld)).rejects.toThrow("this server is PostgreSQL 9: locks need");
});

test("a read-only session is a fault that names it", async () => {
  const pool = clients.pool(server);
  await migrate(pool, { schema: "read_only" });
  const readOnly = new Pool({
    connectionString: server.url,
    options: "-c default_transaction_read_only=on",
  });
  const locks = clients.locks(readOnly, { schema: "read_only" });
  await expect(locks.tryAcquire("a")).rejects.toMatchObject({ fault: "read-only" });
  await clients.close();
  await readOnly.end();
});

test("invalid options are refused before anything is sent", () => {
  const pool = clients.pool(server);
  const refused = (options: object, option: string): void => {
    expect(() => postgres(pool, options)).toThrow(
      expect.objectContaining({ code: "INVALID_OPTION", option }) as Error,
    );
  };
  refused({ schema: 'a"b' }, "schema");
  refused({ schema: "" }, "schema");
  refused({ timeout: 0 }, "timeout");
  refused({ maxTtl: "soon" }, "maxTtl");
  refused({ drift: 1 }, "drift");
  refused({ listen: true }, "listen");
  refused({ prefix: "a" }, "prefix");
  expect(() => postgres({} as never)).toThrow("a pg, PGlite or postgres client");
  expect(() => migrationSql({ schema: "a b" })).toThrow("schema");
  expect(() => grantSql("")).toThrow("role");
});

test("a closed manager leaves the pool to its owner", async () => {
  const pool = clients.pool(server);
  await migrate(pool);
  const locks = createLocks(postgres(pool));
  await locks.acquire("a");
  await locks.close();
  expect((await pool.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
});
