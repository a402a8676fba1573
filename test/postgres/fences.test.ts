import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { fenceColumnSql, fencedUpdate } from "../../src/fencing/postgres.ts";
import { migrate } from "../../src/stores/postgres/index.ts";
import { watchLeaks } from "../support/leaks.ts";
import { type PostgresServer, startPostgres } from "../../tools/databases/postgres.mjs";
import { PostgresClients } from "./postgres-locks.ts";

let server: PostgresServer;
const clients = new PostgresClients();

watchLeaks();

beforeAll(async () => {
  server = await startPostgres();
  await migrate(clients.pool(server));
  await clients.close();
});

afterEach(() => clients.close());
afterAll(() => server.stop());

test("the fences of a resource grow while its row is swept away all the time", async () => {
  const pool = clients.pool(server, 8);
  const managers = [1, 2, 3].map(() => clients.locks(pool));
  const over = new AbortController();
  let swept = 0;
  const sweeping = (async () => {
    while (!over.signal.aborted) {
      const text = "SELECT holdfast.sweep_v1(interval '0', 100) AS swept";
      swept += (await pool.query<{ swept: number }>(text)).rows[0]?.swept ?? 0;
    }
  })();
  let last = 0n;
  let holds = 0;
  await Promise.all(
    managers.map(async (locks) => {
      for (let hold = 0; hold < 150; hold += 1) {
        const lease = await locks.acquire("swept", { wait: "forever" });
        expect(lease.fence).toBeGreaterThan(last);
        last = lease.fence;
        holds += 1;
        await lease.release();
      }
    }),
  );
  over.abort();
  await sweeping;
  expect(holds).toBe(450);
  expect(swept).toBeGreaterThan(0);
});

test("a held or recently used lock is not swept away", async () => {
  const pool = clients.pool(server);
  const locks = clients.locks(pool);
  const lease = await locks.acquire("held");
  await (await locks.acquire("used")).release();
  await pool.query("SELECT holdfast.sweep_v1(interval '0', 100)");
  expect(await lease.prove()).toBe(true);
  await (await locks.acquire("used")).release();
  await pool.query("SELECT holdfast.sweep_v1(interval '1 day', 100)");
  const names = await pool.query<{ name: string }>(
    "SELECT convert_from(name, 'UTF8') AS name FROM holdfast.locks ORDER BY 1",
  );
  expect(names.rows.map(({ name }) => name)).toEqual(["held", "used"]);
});

test("fences follow the server's clock, so that guards and other stores fit them", async () => {
  const pool = clients.pool(server);
  const locks = clients.locks(pool);
  await pool.query("CREATE TABLE invoice (id int PRIMARY KEY, paid boolean)");
  await pool.query(fenceColumnSql("invoice"));
  await pool.query("INSERT INTO invoice VALUES (1, false)");
  const usOf = async (): Promise<bigint> => {
    const { rows } = await pool.query<{ us: string }>("SELECT holdfast.clock_us_v1() AS us");
    return BigInt(rows[0]?.us ?? 0);
  };
  const before = await usOf();
  const lease = await locks.acquire("invoice:1");
  expect(lease.fence).toBeGreaterThan(before);
  const { updated } = await fencedUpdate(pool, lease, {
    table: "invoice",
    set: { paid: true },
    where: { id: 1 },
  });
  expect(updated).toBe(1);
  await lease.release();
  // As after months without a lock: the sequence is behind the clock.
  await pool.query("SELECT setval('holdfast.fences', 32)");
  const now = await usOf();
  expect((await locks.acquire("invoice:1")).fence).toBeGreaterThan(now);
});

test("another server begins a generation above all fences, and held leases are proven", async () => {
  const pool = clients.pool(server);
  const locks = clients.locks(pool);
  const replaced: string[] = [];
  locks.on("node-replaced", ({ why }) => replaced.push(why));
  const held = await locks.acquire("generation a");
  const lost = await locks.acquire("generation b");
  const before = await locks.acquire("generation c");
  await before.release();
  const doubtful = new Promise((resolve) => locks.on("doubtful", resolve));
  // As a promoted copy sees its tables: another timeline, and the latest grants are missing.
  await pool.query("UPDATE holdfast.server SET timeline = timeline - 1");
  await pool.query("SELECT setval('holdfast.fences', 32)");
  await pool.query("DELETE FROM holdfast.locks WHERE name = convert_to('generation b', 'UTF8')");
  const after = await locks.acquire("generation c");
  expect(after.fence).toBeGreaterThan(before.fence + 4_000_000_000n);
  await doubtful;
  await new Promise<void>((resolve) => {
    if (lost.state === "lost") resolve();
    else locks.on("lost", () => resolve());
  });
  expect(await held.prove()).toBe(true);
  expect(held.state).toBe("held");
  expect(lost.state).toBe("lost");
  expect(replaced).toHaveLength(1);
});
