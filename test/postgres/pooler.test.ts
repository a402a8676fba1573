import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { migrate } from "../../src/stores/postgres/index.ts";
import { type Pooler, startPgbouncer } from "../../tools/databases/pgbouncer.mjs";
import { type PostgresServer, startPostgres } from "../../tools/databases/postgres.mjs";
import { watchLeaks } from "../support/leaks.ts";
import { PostgresClients } from "./postgres-locks.ts";

let server: PostgresServer;
let pooler: Pooler;
const clients = new PostgresClients();

watchLeaks();

beforeAll(async () => {
  server = await startPostgres();
  pooler = await startPgbouncer(server);
  await migrate(clients.pool(server));
  await clients.close();
});

afterEach(() => clients.close());
afterAll(async () => {
  await pooler.stop();
  await server.stop();
});

test("a session advisory lock is held by two clients at once through the pooler", async () => {
  // Shows why locks are kept in a table. Both clients run on one connection of the server.
  const [one, other] = [clients.pool(pooler, 1), clients.pool(pooler, 1)];
  const text = "SELECT pg_try_advisory_lock(42) AS granted";
  expect((await one.query(text)).rows).toEqual([{ granted: true }]);
  expect((await other.query(text)).rows).toEqual([{ granted: true }]);
  // A direct connection of its own is refused, so the lock is really held.
  expect((await clients.pool(server).query(text)).rows).toEqual([{ granted: false }]);
});

test("one of many managers behind the pooler has the lock at a time", async () => {
  const pool = clients.pool(pooler, 10);
  const managers = Array.from({ length: 5 }, () => clients.locks(pool));
  const total = { inside: 0, most: 0, holds: 0, last: 0n };
  await Promise.all(
    managers.map(async (locks) => {
      for (let hold = 0; hold < 8; hold += 1) {
        await locks.using("pooled", { wait: "forever" }, async ({ fence }) => {
          total.inside += 1;
          total.most = Math.max(total.most, total.inside);
          expect(fence).toBeGreaterThan(total.last);
          total.last = fence;
          await pool.query("SELECT pg_sleep(0.001)");
          total.inside -= 1;
          total.holds += 1;
        });
      }
    }),
  );
  expect(total).toMatchObject({ inside: 0, most: 1, holds: 40 });
});

test("a manager behind the pooler finds out that no notification arrives, and polls", async () => {
  const [ours, theirs] = [1, 2].map(() => clients.locks(clients.pool(pooler), { timeout: 500 }));
  const warned = new Promise((resolve) => theirs?.on("warning", resolve));
  const held = await ours?.acquire("deaf");
  const next = theirs?.acquire("deaf", { wait: "forever" });
  expect(await warned).toMatchObject({ code: "no-wake-ups" });
  await held?.release();
  expect((await next)?.state).toBe("held");
});

test("a direct client for LISTEN notifies managers behind the pooler", async () => {
  const direct = clients.pool(server, 2);
  const options = { listen: direct };
  const [ours, theirs] = [1, 2].map(() => clients.locks(clients.pool(pooler), options));
  const warnings: unknown[] = [];
  theirs?.on("warning", (warning) => warnings.push(warning));
  const held = await ours?.acquire("direct");
  const next = theirs?.acquire("direct", { wait: "forever", retry: { maxDelay: "20s" } });
  const text = "SELECT channel FROM holdfast.queue WHERE channel IS NOT NULL";
  while ((await direct.query(text)).rowCount === 0) await direct.query("SELECT pg_sleep(0.02)");
  await held?.release();
  expect((await next)?.state).toBe("held");
  expect(warnings).toEqual([]);
});
