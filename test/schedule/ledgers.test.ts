import { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { schedule, type Ledger } from "../../src/schedule/index.ts";
import { postgresLedger, postgresLedgerSql, redisLedger } from "../../src/schedule/index.ts";
import { type PostgresServer, startPostgres } from "../../tools/databases/postgres.mjs";
import { leaseLike, shuffledFences } from "../guards/lease-like.ts";
import { eventually } from "../support/redis-eventually.ts";
import { dial, shareRedis } from "../support/redis-harness.ts";

const bench = shareRedis(3);
let server: PostgresServer;
let pool: Pool;

beforeAll(async () => {
  server = await startPostgres();
  // Without a timer for idle connections, which would outlive a test.
  pool = new Pool({ connectionString: server.url, idleTimeoutMillis: 0, max: 4 });
  // Opens all connections: a test must not leave behind one that it has opened.
  await Promise.all([1, 2, 3, 4].map(() => pool.query("SELECT pg_sleep(0.1)")));
});

afterAll(async () => {
  await pool.end();
  await server.stop();
});

const kinds: readonly (readonly [string, (place: string) => Promise<Ledger>])[] = [
  [
    "Postgres",
    async (place) => {
      await pool.query(postgresLedgerSql(place));
      return postgresLedger(pool, { table: place });
    },
  ],
  ["Redis", async (place) => redisLedger(dial(bench.server(0).port), { prefix: `${place}:` })],
];

const longAgo = 0;

describe.each(kinds)("a ledger in %s", (_kind, open) => {
  test("keeps a number that only grows, under fences that only grow", async () => {
    const ledger = await open("plain");
    expect(await ledger.last("a")).toBeUndefined();
    expect(await ledger.raise("a", 7, leaseLike(5n), longAgo)).toBe("raised");
    expect(await ledger.raise("a", 7, leaseLike(5n), longAgo)).toBe("raised");
    expect(await ledger.raise("a", 7, leaseLike(6n), longAgo)).toBe("refused");
    expect(await ledger.raise("a", 8, leaseLike(4n), longAgo)).toBe("refused");
    expect(await ledger.raise("a", 6, leaseLike(6n), longAgo)).toBe("refused");
    const value = Date.UTC(2030, 0, 1) * 16 + 15;
    expect(await ledger.raise("a", value, leaseLike(6n), longAgo)).toBe("raised");
    expect(await ledger.last("a")).toBe(value);
    expect(await ledger.last("b")).toBeUndefined();
    await clear();
  });

  test("refuses a number whose time is far ahead of its own clock", async () => {
    const ledger = await open("early");
    const nextYear = Date.now() + 365 * 86_400_000;
    expect(await ledger.raise("a", 7, leaseLike(5n), nextYear)).toBe("early");
    expect(await ledger.last("a")).toBeUndefined();
    expect(await ledger.raise("a", 7, leaseLike(5n), Date.now())).toBe("raised");
    await clear();
  });

  test("lets one of many holders raise it to a number", async () => {
    const ledger = await open("race");
    const outcomes = await Promise.all(
      shuffledFences(12, 3).map((fence) => ledger.raise("a", 7, leaseLike(fence), longAgo)),
    );
    expect(outcomes.filter((outcome) => outcome === "raised")).toHaveLength(1);
    await clear();
  });

  test("makes a schedule of a quorum run each tick in one of several managers", async () => {
    const ledger = await open("ticks");
    const ticks: number[] = [];
    const managers = [await bench.locks(3), await bench.locks(3), await bench.locks(3)];
    const running = managers.map((locks) =>
      schedule(locks, "report", { every: "100ms", ledger }, ({ tick }) => {
        ticks.push(tick.getTime());
      }),
    );
    await eventually(() => ticks.length >= 8);
    await Promise.all(running.map((each) => each.stop()));
    expect(ticks).toEqual([...new Set(ticks)].toSorted((a, b) => a - b));
    expect(() => schedule(managers[0] as never, "a", { every: "1m" }, () => 1)).toThrow(
      "this store keeps no marks",
    );
    await clear();
  });
});

test("a ledger in Postgres names the statement that creates its table", async () => {
  const ledger = postgresLedger(pool, { table: "gone" });
  const remedy = 'run the statement of postgresLedgerSql("gone") once';
  await expect(ledger.last("a")).rejects.toThrow(remedy);
  await expect(ledger.raise("a", 1, leaseLike(1n), longAgo)).rejects.toThrow(remedy);
});

test("a ledger in Redis leaves a key alone that holds something else", async () => {
  const client = dial(bench.server(0).port);
  await client.set("x:a", "text");
  const ledger = redisLedger(client, { prefix: "x:" });
  await expect(ledger.last("a")).rejects.toThrow("holds a string");
  await expect(ledger.raise("a", 1, leaseLike(1n), longAgo)).rejects.toThrow("holds a string");
  expect(await client.get("x:a")).toBe("text");
  await clear();
});

async function clear(): Promise<void> {
  const keys = (await bench.server(0).command("KEYS", "*:*")) as string[];
  const own = keys.filter((key) => key !== "holdfast:node");
  if (own.length > 0) await bench.server(0).command("DEL", ...own);
}
