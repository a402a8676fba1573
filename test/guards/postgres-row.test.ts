import type { Pool } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { FenceRejectedError, InvalidOptionError, StoreError } from "../../src/core/errors.ts";
import { UnsupportedError } from "../../src/core/errors.ts";
import { assertFenced, fenceColumnSql, fencedUpdate } from "../../src/fencing/postgres.ts";
import type { FencedUpdate } from "../../src/fencing/postgres.ts";
import { shareDatabases } from "./databases.ts";
import { leaseLike, rejectionOf, shuffledFences, unfencedLease } from "./lease-like.ts";
import { postgresClients } from "./postgres-clients.ts";
import type { PostgresClient } from "./postgres-clients.ts";

const databases = shareDatabases("postgres");

const beyondDouble = 9_007_199_254_740_993n;

describe.each(postgresClients)("a fence column through %s", (_, connect) => {
  let client: PostgresClient;

  beforeAll(async () => {
    client = await connect(databases.postgres);
  });

  afterAll(async () => {
    await client.close();
  });

  beforeEach(async () => {
    await client.run("DROP TABLE IF EXISTS invoice");
    await client.run(
      "CREATE TABLE invoice (id INT PRIMARY KEY, paid BOOLEAN NOT NULL DEFAULT false, " +
        "note TEXT, big BIGINT, at TIMESTAMPTZ, doc JSONB)",
    );
    await client.run("INSERT INTO invoice (id) VALUES (42), (43)");
    await client.run(fenceColumnSql("invoice"));
  });

  const write = (note: string): FencedUpdate => ({
    table: "invoice",
    set: { paid: true, note },
    where: { id: 42 },
    maxFenceAhead: "unlimited",
  });

  const row = async (): Promise<Record<string, unknown> | undefined> =>
    (await client.run("SELECT paid, note, fence::text FROM invoice WHERE id = 42"))[0];

  it("accepts an equal fence again, because a lease may write more than once", async () => {
    expect(await fencedUpdate(client.db, leaseLike(7n), write("a"))).toEqual({ updated: 1 });
    expect(await fencedUpdate(client.db, leaseLike(7n), write("b"))).toEqual({ updated: 1 });
    expect(await fencedUpdate(client.db, leaseLike(7n), write("b"))).toEqual({ updated: 1 });
    expect(await row()).toEqual({ paid: true, note: "b", fence: "7" });
  });

  it("accepts a greater fence and refuses the smaller one with the fence it saw", async () => {
    await fencedUpdate(client.db, leaseLike(7n), write("a"));
    await fencedUpdate(client.db, leaseLike(beyondDouble), write("b"));
    const stale = leaseLike(beyondDouble - 1n);
    const error = await rejectionOf(fencedUpdate(client.db, stale, write("late")));
    expect(error).toBeInstanceOf(FenceRejectedError);
    expect(error).toMatchObject({
      fence: beyondDouble - 1n,
      seen: beyondDouble,
      resources: ["invoice:42"],
    });
    expect(stale.rejections).toEqual([
      {
        resource: "invoice:42",
        fence: beyondDouble - 1n,
        seen: beyondDouble,
        guard: "postgres",
      },
    ]);
    expect(await row()).toEqual({ paid: true, note: "b", fence: String(beyondDouble) });
  });

  it("distinguishes a missing row from a stale fence", async () => {
    const update = { ...write("x"), where: { id: 99 } };
    expect(await fencedUpdate(client.db, leaseLike(7n), update)).toEqual({ updated: 0 });
  });

  it("accepts a plain bigint and the greatest BIGINT", async () => {
    const greatest = 2n ** 63n - 1n;
    await fencedUpdate(client.db, greatest, write("a"));
    const error = await rejectionOf(fencedUpdate(client.db, greatest - 1n, write("b")));
    expect(error).toMatchObject({ fence: greatest - 1n, seen: greatest, resources: ["invoice"] });
  });

  it("accepts parameters of every type", async () => {
    const at = new Date("2026-01-02T03:04:05.678Z");
    await fencedUpdate(client.db, 1n, {
      table: "invoice",
      set: { note: "'); DROP TABLE invoice; --", big: "9007199254740993", at, doc: { a: [1] } },
      where: { id: 42, note: null },
    });
    const [found] = await client.run("SELECT note, big::text, at, doc FROM invoice WHERE id = 42");
    expect(found).toEqual({
      note: "'); DROP TABLE invoice; --",
      big: "9007199254740993",
      at,
      doc: { a: [1] },
    });
  });

  it("changes all matching rows or none", async () => {
    await fencedUpdate(client.db, 9n, { table: "invoice", set: {}, where: { id: 43 } });
    const both = { table: "invoice", set: { note: "both" }, where: { paid: false } };
    const error = await rejectionOf(fencedUpdate(client.db, 8n, both));
    expect(error).toMatchObject({ code: "FENCE_REJECTED", seen: 9n });
    expect(await client.run("SELECT id FROM invoice WHERE note IS NOT NULL")).toEqual([]);
    expect(await fencedUpdate(client.db, 9n, both)).toEqual({ updated: 2 });
  });

  it("leaves nothing behind after a rollback", async () => {
    const undone = client.transaction(async (db) => {
      await fencedUpdate(db, leaseLike(7n), write("undone"));
      throw new Error("changed my mind");
    });
    expect(await rejectionOf(undone)).toMatchObject({ message: "changed my mind" });
    expect(await row()).toEqual({ paid: false, note: null, fence: "0" });
  });

  it("treats a fence column that is NULL as never written", async () => {
    await client.run("ALTER TABLE invoice ADD COLUMN token BIGINT");
    const update = { ...write("a"), column: "token" };
    expect(await fencedUpdate(client.db, 3n, update)).toEqual({ updated: 1 });
    expect(await rejectionOf(fencedUpdate(client.db, 2n, update))).toMatchObject({ seen: 3n });
  });

  it("quotes unusual names, and no name can end the statement", async () => {
    const table = 'od"d; DROP TABLE invoice; --';
    const column = `fence" = 1; --`;
    await client.run(`CREATE SCHEMA IF NOT EXISTS "s.x"`);
    await client.run(`DROP TABLE IF EXISTS "s.x"."${table.replaceAll('"', '""')}"`);
    await client.run(
      `CREATE TABLE "s.x"."${table.replaceAll('"', '""')}" ("Sélect $1" TEXT, "where" INT)`,
    );
    await client.run(`INSERT INTO "s.x"."${table.replaceAll('"', '""')}" VALUES ('a', 1)`);
    const name = ["s.x", table];
    await client.run(fenceColumnSql(name, column));
    await client.run(fenceColumnSql(name, column));
    const update = { table: name, column, set: { "Sélect $1": "b" }, where: { where: 1 } };
    expect(await fencedUpdate(client.db, 5n, update)).toEqual({ updated: 1 });
    expect(await rejectionOf(fencedUpdate(client.db, 4n, update))).toMatchObject({ seen: 5n });
    expect(await client.run("SELECT count(*)::int AS n FROM invoice")).toEqual([{ n: 2 }]);
    const injected = { ...write("x"), table: 'invoice" SET paid = true; --' };
    expect(await rejectionOf(fencedUpdate(client.db, 5n, injected))).toMatchObject({
      code: "42P01",
    });
    expect(await row()).toMatchObject({ paid: false });
  });

  it("writes nothing for a lease without a fence, or a fence that does not fit BIGINT", async () => {
    const unfenced = fencedUpdate(client.db, unfencedLease(), write("x"));
    expect(await rejectionOf(unfenced)).toBeInstanceOf(UnsupportedError);
    for (const fence of [0n, -1n, 2n ** 63n, 5 as never, "5" as never, undefined as never]) {
      const error = await rejectionOf(fencedUpdate(client.db, fence, write("x")));
      expect(error).toBeInstanceOf(InvalidOptionError);
      expect(error).toMatchObject({ option: "fence" });
    }
    expect(await row()).toEqual({ paid: false, note: null, fence: "0" });
  });

  it("names the migration if the column is missing, and passes other errors on", async () => {
    const update = { ...write("x"), column: "token" };
    const error = await rejectionOf(fencedUpdate(client.db, 5n, update));
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({
      message: expect.stringContaining('fenceColumnSql("invoice", "token")'),
    });
    const other = { ...write("x"), set: { nonsense: 1 } };
    expect(await rejectionOf(fencedUpdate(client.db, 5n, other))).toMatchObject({ code: "42703" });
    expect(await row()).toMatchObject({ paid: false, fence: "0" });
  });

  it("explains a hand-written update that changed nothing", async () => {
    const target = { table: "invoice", where: { id: 42 } };
    await fencedUpdate(client.db, 9n, write("a"));
    expect(await assertFenced(client.db, 8n, 1, target)).toEqual({ updated: 1 });
    expect(await rejectionOf(assertFenced(client.db, leaseLike(8n), 0, target))).toMatchObject({
      code: "FENCE_REJECTED",
      seen: 9n,
    });
    expect(await assertFenced(client.db, 8n, 0, { ...target, where: { id: 99 } })).toEqual({
      updated: 0,
    });
    expect(await assertFenced(client.db, 9n, 0, target)).toEqual({ updated: 0 });
  });

  it("keeps the write of the greatest fence of many concurrent ones", async () => {
    const fences = shuffledFences(60, 11);
    const outcomes = await Promise.all(
      fences.map(async (fence) => {
        try {
          await fencedUpdate(client.db, fence, write(String(fence)));
          return { fence, seen: undefined };
        } catch (error) {
          expect(error).toBeInstanceOf(FenceRejectedError);
          return { fence, seen: (error as FenceRejectedError).seen };
        }
      }),
    );
    expect(await row()).toEqual({ paid: true, note: "60", fence: "60" });
    for (const { fence, seen } of outcomes) if (seen !== undefined) expect(seen > fence).toBe(true);
  });
});

describe("a fence column between two Postgres sessions", () => {
  let pool: Pool;

  beforeAll(() => {
    pool = databases.postgresPool;
  });

  beforeEach(async () => {
    await pool.query("DROP TABLE IF EXISTS invoice, log");
    await pool.query("CREATE TABLE invoice (id INT PRIMARY KEY, note TEXT)");
    await pool.query("INSERT INTO invoice VALUES (42), (43)");
    await pool.query(fenceColumnSql("invoice"));
    // Records the order of accepted fences as the server saw it.
    await pool.query("CREATE TABLE log (seq SERIAL, fence BIGINT)");
    await pool.query(
      "CREATE OR REPLACE FUNCTION record() RETURNS trigger LANGUAGE plpgsql AS " +
        "'BEGIN INSERT INTO log (fence) VALUES (NEW.fence); RETURN NEW; END'",
    );
    await pool.query(
      "CREATE TRIGGER record AFTER UPDATE ON invoice FOR EACH ROW EXECUTE FUNCTION record()",
    );
  });

  const write = (note: string): FencedUpdate => ({
    table: "invoice",
    set: { note },
    where: { id: 42 },
  });

  /** Waits until this many sessions wait for a lock. */
  async function waiting(count: number): Promise<void> {
    for (;;) {
      const { rows } = await pool.query<{ n: number }>(
        "SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
      );
      if (rows[0]?.n === count) return;
    }
  }

  it("accepts fences in rising order only", async () => {
    for (const seed of [1, 2, 3]) {
      await pool.query("TRUNCATE log");
      await pool.query("UPDATE invoice SET fence = 0 WHERE id = 42");
      await pool.query("TRUNCATE log RESTART IDENTITY");
      const writes = shuffledFences(80, seed).map((fence) =>
        fencedUpdate(pool, fence, write(String(fence))),
      );
      await Promise.allSettled(writes);
      const { rows } = await pool.query<{ fence: string }>("SELECT fence FROM log ORDER BY seq");
      const accepted = rows.map(({ fence }) => Number(fence));
      expect(accepted).toEqual(accepted.toSorted((a, b) => a - b));
      expect(accepted.at(-1)).toBe(80);
    }
  });

  it("sees what was committed while it waited for the row", async () => {
    const newer = await pool.connect();
    await newer.query("BEGIN");
    await fencedUpdate(newer, 9n, write("newer"));
    const stale = rejectionOf(fencedUpdate(pool, 8n, write("stale")));
    await waiting(1);
    await newer.query("COMMIT");
    newer.release();
    expect(await stale).toMatchObject({ code: "FENCE_REJECTED", seen: 9n });
  });

  it("updates the version that was committed while it waited", async () => {
    const older = await pool.connect();
    await older.query("BEGIN");
    await fencedUpdate(older, 7n, write("older"));
    const newer = fencedUpdate(pool, 8n, write("newer"));
    const several = fencedUpdate(pool, 8n, {
      table: "invoice",
      set: { note: "swept" },
      where: { fence: 0, id: 43 },
    });
    await waiting(1);
    await older.query("COMMIT");
    older.release();
    expect(await newer).toEqual({ updated: 1 });
    expect(await several).toEqual({ updated: 1 });
    const { rows } = await pool.query("SELECT id, note, fence FROM invoice ORDER BY id");
    expect(rows).toEqual([
      { id: 42, note: "newer", fence: "8" },
      { id: 43, note: "swept", fence: "8" },
    ]);
  });

  it("accepts a smaller fence again after the greater one was rolled back", async () => {
    const newer = await pool.connect();
    await newer.query("BEGIN");
    await fencedUpdate(newer, 9n, write("newer"));
    const older = fencedUpdate(pool, 8n, write("older"));
    await waiting(1);
    await newer.query("ROLLBACK");
    newer.release();
    expect(await older).toEqual({ updated: 1 });
  });

  it.each(["REPEATABLE READ", "SERIALIZABLE"])(
    "passes on a serialization failure under %s, and accepts nothing",
    async (level) => {
      const session = await pool.connect();
      await session.query(`BEGIN ISOLATION LEVEL ${level}`);
      await session.query("SELECT * FROM invoice");
      await fencedUpdate(pool, 9n, write("newer"));
      const error = await rejectionOf(fencedUpdate(session, 8n, write("stale")));
      expect(error).toMatchObject({ code: "40001" });
      await session.query("ROLLBACK");
      session.release();
      const { rows } = await pool.query("SELECT note FROM invoice WHERE id = 42");
      expect(rows).toEqual([{ note: "newer" }]);
    },
  );
});

describe("a fenced update refuses", () => {
  const never = (): never => {
    throw new Error("nothing may be sent");
  };
  const good: FencedUpdate = { table: "invoice", set: { a: 1 }, where: { id: 1 } };

  it.each([
    ["an unknown option", { ...good, colum: "x" }, "colum"],
    ["no table", { ...good, table: undefined }, "table"],
    ["an empty table name", { ...good, table: "" }, "table"],
    ["an empty part", { ...good, table: "a..b" }, "table"],
    ["four parts", { ...good, table: "a.b.c.d" }, "table"],
    ["a zero character", { ...good, table: "a\0b" }, "table"],
    ["no where", { table: "a", set: {} }, "where"],
    ["an empty where", { ...good, where: {} }, "where"],
    ["undefined in where", { ...good, where: { id: undefined } }, "where.id"],
    ["undefined in set", { ...good, set: { a: undefined } }, "set.a"],
    ["a list as set", { ...good, set: [1] }, "set"],
    ["the fence in set", { ...good, set: { fence: 1 } }, "set"],
    ["an empty column", { ...good, column: "" }, "column"],
    ["an empty resource", { ...good, resource: "" }, "resource"],
  ])("%s", async (_, options, option) => {
    const error = await rejectionOf(fencedUpdate(never, 1n, options as never));
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error).toMatchObject({ option });
  });

  it("a value that is not a database", async () => {
    for (const db of [undefined, null, {}, "postgres://", 5]) {
      const error = await rejectionOf(fencedUpdate(db as never, 1n, good));
      expect(error).toMatchObject({ code: "INVALID_OPTION", option: "db" });
    }
  });

  it("a query function that returns no rows", async () => {
    const error = await rejectionOf(fencedUpdate(async () => ({}) as never, 1n, good));
    expect(error).toBeInstanceOf(StoreError);
  });

  it("an outcome without a count", async () => {
    const row = { table: "invoice", where: { id: 1 } };
    for (const outcome of [undefined, {}, -1, 0.5, { rowCount: null }]) {
      const error = await rejectionOf(assertFenced(never, 1n, outcome as never, row));
      expect(error).toMatchObject({ code: "INVALID_OPTION", option: "outcome" });
    }
  });
});
