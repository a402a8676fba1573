import type { Pool } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { FenceRejectedError, InvalidOptionError, StoreError } from "../../src/core/errors.ts";
import { UnsupportedError } from "../../src/core/errors.ts";
import { fenceColumnSql, fenceTriggerSql, guardFence } from "../../src/fencing/postgres.ts";
import { guardTableSql, throwIfFenceRejected } from "../../src/fencing/postgres.ts";
import { shareDatabases } from "./databases.ts";
import { leaseLike, rejectionOf, shuffledFences, unfencedLease } from "./lease-like.ts";
import { pgClient, postgresClients } from "./postgres-clients.ts";
import type { PostgresClient } from "./postgres-clients.ts";

const databases = shareDatabases("postgres");

describe.each(postgresClients)("a guard table through %s", (_, connect) => {
  let client: PostgresClient;

  beforeAll(async () => {
    client = await connect(databases.postgres);
  });

  afterAll(async () => {
    await client.close();
  });

  beforeEach(async () => {
    await client.run("DROP TABLE IF EXISTS holdfast_fence, note");
    await client.run(guardTableSql());
    await client.run(guardTableSql());
    await client.run("CREATE TABLE note (text TEXT)");
  });

  const guards = (): Promise<readonly Record<string, unknown>[]> =>
    client.run("SELECT resource, fence::text FROM holdfast_fence ORDER BY resource");

  it("accepts equal and greater fences and refuses a smaller one", async () => {
    const unlimited = { maxFenceAhead: "unlimited" } as const;
    for (const fence of [7n, 7n, 9_007_199_254_740_993n]) {
      await client.transaction((db) => guardFence(db, leaseLike(fence), unlimited));
    }
    const stale = leaseLike(9_007_199_254_740_992n);
    const error = await rejectionOf(
      client.transaction(async (db) => {
        await guardFence(db, stale, unlimited);
        throw new Error("must not get here");
      }),
    );
    expect(error).toBeInstanceOf(FenceRejectedError);
    expect(error).toMatchObject({ seen: 9_007_199_254_740_993n, resources: ["invoice:42"] });
    expect(stale.rejections).toMatchObject([{ resource: "invoice:42", guard: "postgres" }]);
    expect(await guards()).toEqual([{ resource: "invoice:42", fence: "9007199254740993" }]);
  });

  it("guards every resource of a lease, or the given ones", async () => {
    await client.transaction((db) => guardFence(db, leaseLike(5n, "b", "a", "c")));
    await client.transaction((db) => guardFence(db, 8n, { resource: "b" }));
    await client.transaction((db) => guardFence(db, leaseLike(6n, "b", "a"), { resource: "a" }));
    const stale = client.transaction((db) => guardFence(db, leaseLike(7n, "a", "b")));
    expect(await rejectionOf(stale)).toMatchObject({ fence: 7n, seen: 8n, resources: ["b"] });
    expect(await guards()).toEqual([
      { resource: "a", fence: "6" },
      { resource: "b", fence: "8" },
      { resource: "c", fence: "5" },
    ]);
  });

  it("leaves nothing behind after a rollback", async () => {
    const undone = client.transaction(async (db) => {
      await guardFence(db, leaseLike(7n));
      throw new Error("changed my mind");
    });
    expect(await rejectionOf(undone)).toMatchObject({ message: "changed my mind" });
    expect(await guards()).toEqual([]);
  });

  it("refuses to run outside of a transaction, because its lock would end at once", async () => {
    const error = await rejectionOf(guardFence(client.db, leaseLike(7n)));
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error).toMatchObject({ option: "db" });
    expect(await guards()).toEqual([]);
  });

  it("names the migration if the table is missing", async () => {
    const missing = (table?: string): Promise<unknown> =>
      rejectionOf(
        client.transaction((db) =>
          guardFence(db, leaseLike(7n), table === undefined ? {} : { table }),
        ),
      );
    expect(await missing("app.fences")).toBeInstanceOf(StoreError);
    await client.run("DROP TABLE holdfast_fence");
    const error = await missing();
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ message: expect.stringContaining("guardTableSql()") });
  });

  it("accepts a table of any name, and resources with any characters and length", async () => {
    const table = ["public", 'guard"s; DROP TABLE note; --'];
    await client.run(guardTableSql(table));
    const resources = ["Straße", "strasse", "a ", "a", "🔒", "x\0y", "l".repeat(4_096), "'; --"];
    await client.transaction((db) => guardFence(db, leaseLike(7n, ...resources), { table }));
    for (const resource of resources) {
      const stale = client.transaction((db) => guardFence(db, 6n, { table, resource }));
      expect(await rejectionOf(stale)).toMatchObject({ seen: 7n, resources: [resource] });
    }
    await client.transaction((db) => guardFence(db, 1n, { table, resource: "A" }));
    expect(await client.run("SELECT count(*)::int AS n FROM note")).toEqual([{ n: 0 }]);
    await client.run('DROP TABLE "guard""s; DROP TABLE note; --"');
  });

  it("writes nothing for a lease without a fence, bad fences and bad options", async () => {
    const attempt = (fenced: unknown, options?: unknown): Promise<unknown> =>
      rejectionOf(client.transaction((db) => guardFence(db, fenced as never, options as never)));
    expect(await attempt(unfencedLease())).toBeInstanceOf(UnsupportedError);
    expect(await attempt(2n ** 63n, { resource: "a" })).toMatchObject({ option: "fence" });
    expect(await attempt(0n, { resource: "a" })).toMatchObject({ option: "fence" });
    expect(await attempt(1n)).toMatchObject({ option: "resource" });
    expect(await attempt(1n, { resource: [] })).toMatchObject({ option: "resource" });
    expect(await attempt(leaseLike(1n), { tabel: "x" })).toMatchObject({ option: "tabel" });
    expect(await attempt(leaseLike(1n), { table: "" })).toMatchObject({ option: "table" });
    expect(await guards()).toEqual([]);
  });
});

describe("a guard table between Postgres sessions", () => {
  let pool: Pool;

  beforeAll(() => {
    pool = databases.postgresPool;
  });

  beforeEach(async () => {
    await pool.query("DROP TABLE IF EXISTS holdfast_fence, log");
    await pool.query(guardTableSql());
    await pool.query("CREATE TABLE log (seq SERIAL, resource TEXT, fence BIGINT)");
  });

  async function guardedWrite(fence: bigint, resources: readonly string[]): Promise<boolean> {
    const session = await pool.connect();
    try {
      await session.query("BEGIN");
      await guardFence(session, leaseLike(fence, ...resources));
      for (const resource of resources) {
        await session.query("INSERT INTO log (resource, fence) VALUES ($1, $2)", [
          resource,
          String(fence),
        ]);
      }
      await session.query("COMMIT");
      return true;
    } catch (error) {
      await session.query("ROLLBACK");
      if (error instanceof FenceRejectedError) return false;
      throw error;
    } finally {
      session.release();
    }
  }

  it("accepts the fences of each resource in rising order only, without deadlocks", async () => {
    const sets = [
      ["a", "b"],
      ["b", "c"],
      ["c", "a"],
      ["c", "b", "a"],
    ];
    const order = shuffledFences(80, 5);
    const writes = order.map((fence, index) =>
      guardedWrite(fence, sets[index % sets.length] ?? []),
    );
    const accepted = await Promise.all(writes);
    // No fence is greater, so this one must be accepted.
    expect(accepted[order.indexOf(80n)]).toBe(true);
    for (const resource of ["a", "b", "c"]) {
      const { rows } = await pool.query<{ fence: string }>(
        "SELECT fence FROM log WHERE resource = $1 ORDER BY seq",
        [resource],
      );
      const fences = rows.map(({ fence }) => Number(fence));
      expect(fences).toEqual(fences.toSorted((a, b) => a - b));
    }
  });

  it("makes other sessions wait until the transaction ends", async () => {
    const older = await pool.connect();
    await older.query("BEGIN");
    await guardFence(older, leaseLike(7n));
    let newerDone = false;
    const newer = guardedWrite(8n, ["invoice:42"]).then((accepted) => {
      newerDone = true;
      return accepted;
    });
    for (let waits = 0; waits === 0;) {
      const { rows } = await pool.query(
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
      );
      waits = rows.length;
    }
    await older.query("INSERT INTO log (resource, fence) VALUES ('invoice:42', 7)");
    expect(newerDone).toBe(false);
    await older.query("COMMIT");
    older.release();
    expect(await newer).toBe(true);
    const { rows } = await pool.query("SELECT fence FROM log ORDER BY seq");
    expect(rows).toEqual([{ fence: "7" }, { fence: "8" }]);
  });

  it.each(["REPEATABLE READ", "SERIALIZABLE"])(
    "passes on a serialization failure under %s, and accepts nothing",
    async (level) => {
      for (const first of [true, false]) {
        if (!first) await guardedWrite(1n, ["invoice:42"]);
        else await pool.query("TRUNCATE holdfast_fence");
        const session = await pool.connect();
        await session.query(`BEGIN ISOLATION LEVEL ${level}`);
        await session.query("SELECT * FROM holdfast_fence");
        await guardedWrite(9n, ["invoice:42"]);
        const error = await rejectionOf(guardFence(session, leaseLike(8n)));
        expect(error).toMatchObject({ code: "40001" });
        await session.query("ROLLBACK");
        session.release();
        await pool.query("TRUNCATE holdfast_fence");
      }
    },
  );

  it("works inside a savepoint", async () => {
    const session = await pool.connect();
    await session.query("BEGIN");
    await session.query("SAVEPOINT nested");
    await guardFence(session, leaseLike(7n));
    await session.query("ROLLBACK TO nested");
    await guardFence(session, leaseLike(6n));
    await session.query("COMMIT");
    session.release();
    const { rows } = await pool.query("SELECT fence FROM holdfast_fence");
    expect(rows).toEqual([{ fence: "6" }]);
  });
});

describe("the trigger that refuses a lower fence", () => {
  let client: PostgresClient;

  beforeAll(() => {
    client = pgClient(databases.postgres);
  });

  afterAll(async () => {
    await client.close();
  });

  it.each([
    ["fence", ["public", "account"]],
    [`odd"$holdfast$'fence`, ["public", 'ac"count; --']],
  ])("stops an update without the condition (column %s)", async (column, table) => {
    const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;
    const name = table.map(quoted).join(".");
    const fence = quoted(column);
    await client.run(`DROP TABLE IF EXISTS ${name}`);
    await client.run(`CREATE TABLE ${name} (id INT, balance INT)`);
    await client.run(`INSERT INTO ${name} VALUES (1, 10)`);
    await client.run(fenceColumnSql(table, column));
    await client.run(fenceTriggerSql(table, column));
    await client.run(fenceTriggerSql(table, column));
    await client.run(`UPDATE ${name} SET balance = 20, ${fence} = 9`);
    await client.run(`UPDATE ${name} SET balance = 21, ${fence} = 9`);
    const error = await rejectionOf(
      client.run(`UPDATE ${name} SET balance = 0, ${fence} = 9007199254740993 - 9007199254740985`),
    );
    expect(error).toMatchObject({ code: "HF412" });
    const lease = leaseLike(8n, "account:1");
    expect(() => throwIfFenceRejected(error, lease)).toThrow(FenceRejectedError);
    expect(lease.rejections).toEqual([
      { resource: "account:1", fence: 8n, seen: 9n, guard: "postgres" },
    ]);
    expect(() => throwIfFenceRejected(new Error("other"), lease)).not.toThrow();
    const rows = await client.run(`SELECT balance, ${fence} AS f FROM ${name}`);
    expect(rows).toEqual([{ balance: 21, f: "9" }]);
  });
});
