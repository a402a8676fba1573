import type { Pool } from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { holdUntilCommit, migrate } from "../../src/stores/postgres/index.ts";
import { watchLeaks } from "../support/leaks.ts";
import { type PostgresServer, startPostgres } from "../../tools/databases/postgres.mjs";
import { PostgresClients } from "./postgres-locks.ts";

let server: PostgresServer;
const clients = new PostgresClients();

watchLeaks();

beforeAll(async () => {
  server = await startPostgres();
  const pool = clients.pool(server);
  await migrate(pool);
  await pool.query("CREATE TABLE account (id text PRIMARY KEY, total int NOT NULL)");
  await clients.close();
});

afterEach(() => clients.close());
afterAll(() => server.stop());

async function totalOf(pool: Pool, id: string): Promise<unknown> {
  const text = "SELECT total FROM account WHERE id = $1";
  return (await pool.query<{ total: number }>(text, [id])).rows[0]?.total;
}

test("a write commits while the lease holds its resources, even past the TTL", async () => {
  const pool = clients.pool(server);
  const [ours, theirs] = [clients.locks(pool), clients.locks(clients.pool(server))];
  const lease = await ours.acquire("past the ttl", { ttl: 300 });
  const tx = await pool.connect();
  await tx.query("BEGIN");
  await holdUntilCommit(tx, lease);
  // The lease expires while its transaction is open: the lock does not change hands.
  await new Promise<void>((resolve) => lease.signal.addEventListener("abort", () => resolve()));
  await tx.query("SELECT pg_sleep(0.2)");
  expect(await theirs.tryAcquire("past the ttl")).toBeUndefined();
  await tx.query("INSERT INTO account VALUES ('past the ttl', 1)");
  const next = theirs.acquire("past the ttl", { wait: "forever" });
  await tx.query("COMMIT");
  tx.release();
  // The next holder always sees what the transaction has written.
  await next;
  expect(await totalOf(pool, "past the ttl")).toBe(1);
});

test("a lease that lost its lock cannot write", async () => {
  const pool = clients.pool(server);
  const [ours, theirs] = [clients.locks(pool), clients.locks(clients.pool(server))];
  const lease = await ours.acquire("broken");
  await theirs.break("broken");
  const tx = await pool.connect();
  await tx.query("BEGIN");
  await expect(holdUntilCommit(tx, lease)).rejects.toMatchObject({ code: "LEASE_LOST" });
  await tx.query("ROLLBACK");
  const next = await theirs.acquire("broken");
  await tx.query("BEGIN");
  await expect(holdUntilCommit(tx, lease)).rejects.toMatchObject({ code: "LEASE_LOST" });
  await tx.query("ROLLBACK");
  tx.release();
  await next.release();
});

test("a lease is renewed while its transaction is open", async () => {
  const pool = clients.pool(server);
  const locks = clients.locks(pool);
  await locks.using(["renewed a", "renewed b"], { ttl: 600 }, async (lease) => {
    const tx = await pool.connect();
    await tx.query("BEGIN");
    await holdUntilCommit(tx, lease);
    await new Promise<void>((resolve) => locks.on("renewed", () => resolve()));
    await tx.query("INSERT INTO account VALUES ('renewed', 7)");
    await tx.query("COMMIT");
    tx.release();
    expect(lease.state).toBe("held");
  });
  expect(await totalOf(pool, "renewed")).toBe(7);
});

test("a check outside a transaction is refused, because it would hold for no time", async () => {
  const pool = clients.pool(server);
  const lease = await clients.locks(pool).acquire("no transaction");
  await expect(holdUntilCommit(pool, lease)).rejects.toMatchObject({
    code: "INVALID_OPTION",
    option: "tx",
  });
});

test("a released lease cannot write", async () => {
  const pool = clients.pool(server);
  const lease = await clients.locks(pool).acquire("released");
  await lease.release();
  await expect(holdUntilCommit(pool, lease)).rejects.toMatchObject({ code: "LEASE_RELEASED" });
});

test("other locks go on while a transaction keeps one of them", async () => {
  const pool = clients.pool(server);
  const locks = clients.locks(pool);
  const lease = await locks.acquire("kept", { ttl: "30s" });
  const tx = await pool.connect();
  await tx.query("BEGIN");
  await holdUntilCommit(tx, lease);
  const names = Array.from({ length: 50 }, (_, index) => `other ${index}`);
  const attempts = await Promise.all(["kept", ...names].map((name) => locks.tryAcquire(name)));
  expect(attempts.map((granted) => granted !== undefined)).toEqual([
    false,
    ...names.map(() => true),
  ]);
  await tx.query("COMMIT");
  tx.release();
});
