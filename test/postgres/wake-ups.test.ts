import { PGlite } from "@electric-sql/pglite";
import postgresJs from "postgres";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { queryOf } from "../../src/fencing/postgres-query.ts";
import { createLocks } from "../../src/index.ts";
import { migrate, postgres, type PostgresDatabase } from "../../src/stores/postgres/index.ts";
import { type PostgresServer, startPostgres } from "../../tools/databases/postgres.mjs";
import { watchLeaks } from "../support/leaks.ts";
import { PostgresClients } from "./postgres-locks.ts";

let server: PostgresServer;
const clients = new PostgresClients();

watchLeaks();

beforeAll(async () => {
  server = await startPostgres();
  await migrate(clients.pool(server));
  await clients.close();
});

afterAll(() => server.stop());

/** Opens a client of each kind that can listen. Each is closed after its test. */
const kinds: Readonly<Record<string, () => Promise<PostgresDatabase>>> = {
  pg: async () => {
    onTestFinished(() => clients.close());
    return clients.pool(server);
  },
  postgres: async () => {
    const sql = postgresJs(server.url, { max: 4, onnotice: () => undefined });
    onTestFinished(() => sql.end());
    return sql;
  },
  PGlite: async () => {
    const lite = await PGlite.create();
    onTestFinished(() => lite.close());
    await migrate(lite);
    return lite;
  },
};

test.each(Object.keys(kinds))("waiting calls are notified through %s", async (kind) => {
  const db = await kinds[kind]?.();
  if (db === undefined) throw new Error(`there is no client ${kind}`);
  const query = queryOf(db);
  const [ours, theirs] = [createLocks(postgres(db)), createLocks(postgres(db))];
  const held = await ours.acquire("notified", { ttl: "30s" });
  const next = theirs.acquire("notified", { wait: "forever", retry: { maxDelay: "20s" } });
  // An entry has a channel only after a test notification has arrived.
  const queued = "SELECT 1 AS one FROM holdfast.queue WHERE channel IS NOT NULL";
  while ((await query(queued, [])).length === 0) await query("SELECT pg_sleep(0.02)", []);
  await held.release();
  expect((await next).state).toBe("held");
  expect(await query("SELECT 1 FROM holdfast.queue WHERE lapses > now()", [])).toEqual([]);
  await Promise.all([ours.close(), theirs.close()]);
});

test("a release notifies the first waiter in the queue, and only that one", async () => {
  onTestFinished(() => clients.close());
  const pool = clients.pool(server, 8);
  const [ours, first, second] = [clients.locks(pool), clients.locks(pool), clients.locks(pool)];
  const held = await ours.acquire("first", { ttl: "30s" });
  const queue = "SELECT channel, number FROM holdfast.queue WHERE channel IS NOT NULL";
  const entries = async (count: number): Promise<{ channel: string; number: string }[]> => {
    for (;;) {
      const { rows } = await pool.query<{ channel: string; number: string }>(
        `${queue} ORDER BY ticket`,
      );
      if (rows.length === count) return rows;
      await pool.query("SELECT pg_sleep(0.02)");
    }
  };
  const next = first.acquire("first", { wait: "forever" });
  await entries(1);
  const last = second.acquire("first", { wait: "forever" });
  const [front, back] = await entries(2);
  const session = await pool.connect();
  const received: unknown[] = [];
  session.on("notification", ({ channel, payload }) => received.push([channel, payload]));
  await session.query(`LISTEN ${String(front?.channel)}`);
  await session.query(`LISTEN ${String(back?.channel)}`);
  await held.release();
  const lease = await next;
  await session.query("SELECT 1");
  expect(received).toEqual([[front?.channel, front?.number]]);
  await session.query("UNLISTEN *");
  session.release();
  await lease.release();
  expect((await last).state).toBe("held");
});
