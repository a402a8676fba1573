import { PGlite } from "@electric-sql/pglite";
import { Pool, type PoolClient } from "pg";
import postgres from "postgres";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createLocks, FenceRejectedError, LeaseLostError, StoreError } from "../../src/index.ts";
import { guardFence, guardTableSql, withGuard } from "../../src/fencing/postgres.ts";
import type { PostgresDatabase, WithGuardOptions } from "../../src/fencing/postgres.ts";
import type { Fenced } from "../../src/fencing/guard.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { shareDatabases } from "./databases.ts";
import { leaseLike, rejectionOf } from "./lease-like.ts";
import { addressOf } from "./postgres-clients.ts";

const databases = shareDatabases("postgres");

type Run = (sql: string) => Promise<readonly Record<string, unknown>[]>;

/** One kind of client. `guarded` passes on a function that runs SQL in the transaction. */
interface Kind {
  readonly run: Run;
  guarded<Result>(
    fenced: Fenced | bigint,
    work: (run: Run) => Promise<Result>,
    options?: WithGuardOptions,
  ): Promise<Result>;
  close(): Promise<unknown>;
}

function pgKind(): Kind {
  const pool = new Pool({ ...addressOf(databases.postgres), max: 5 });
  return {
    run: async (sql) => (await pool.query<Record<string, unknown>>(sql)).rows,
    guarded: (fenced, work, options) =>
      withGuard(
        pool,
        fenced,
        (tx: PoolClient) =>
          work(async (sql) => (await tx.query<Record<string, unknown>>(sql)).rows),
        options,
      ),
    close: () => pool.end(),
  };
}

function postgresJsKind(): Kind {
  const sql = postgres({ ...addressOf(databases.postgres), max: 5, onnotice: () => undefined });
  return {
    run: async (text) => await sql.unsafe(text),
    guarded: (fenced, work, options) =>
      withGuard(sql, fenced, (tx) => work(async (text) => await tx.unsafe(text)), options),
    close: () => sql.end(),
  };
}

async function pgliteKind(): Promise<Kind> {
  const lite = await PGlite.create();
  return {
    run: async (text) => (await lite.query<Record<string, unknown>>(text)).rows,
    guarded: (fenced, work, options) =>
      withGuard(
        lite,
        fenced,
        (tx) => work(async (text) => (await tx.query<Record<string, unknown>>(text)).rows),
        options,
      ),
    close: () => lite.close(),
  };
}

const kinds: readonly (readonly [string, () => Kind | Promise<Kind>])[] = [
  ["pg", pgKind],
  ["postgres", postgresJsKind],
  ["PGlite", pgliteKind],
];

async function createTables(run: Run): Promise<void> {
  await run("DROP TABLE IF EXISTS holdfast_fence, note");
  await run(guardTableSql());
  await run("CREATE TABLE note (text TEXT)");
}

describe.each(kinds)("withGuard through %s", (_, connect) => {
  let kind: Kind;

  beforeAll(async () => {
    kind = await connect();
  });

  afterAll(async () => {
    await kind.close();
  });

  beforeEach(async () => {
    await createTables(kind.run);
  });

  const notes = async (): Promise<unknown[]> =>
    (await kind.run("SELECT text FROM note")).map(({ text }) => text);
  const write =
    (text: string) =>
    async (run: Run): Promise<string> => {
      await run(`INSERT INTO note VALUES ('${text}')`);
      return text;
    };

  it("commits the work with its fence, and returns what it returned", async () => {
    expect(await kind.guarded(leaseLike(7n), write("a"))).toBe("a");
    expect(await kind.guarded(leaseLike(7n), async () => ["a", Promise.resolve(1)])).toHaveLength(
      2,
    );
    expect(await notes()).toEqual(["a"]);
    expect(await kind.run("SELECT resource, fence::text FROM holdfast_fence")).toEqual([
      { resource: "invoice:42", fence: "7" },
    ]);
  });

  it("does not run the work for a stale fence", async () => {
    await kind.guarded(leaseLike(9n), write("newer"));
    let calls = 0;
    const stale = leaseLike(8n);
    const error = await rejectionOf(
      kind.guarded(stale, async () => {
        calls += 1;
      }),
    );
    expect(error).toBeInstanceOf(FenceRejectedError);
    expect(error).toMatchObject({ fence: 8n, seen: 9n });
    expect(stale.rejections).toHaveLength(1);
    expect(calls).toBe(0);
    expect(await notes()).toEqual(["newer"]);
  });

  it("rolls back if the work fails, the fence as well", async () => {
    const error = await rejectionOf(
      kind.guarded(leaseLike(7n), async (run) => {
        await write("undone")(run);
        throw new Error("changed my mind");
      }),
    );
    expect(error).toMatchObject({ message: "changed my mind" });
    expect(await notes()).toEqual([]);
    expect(await kind.run("SELECT 1 FROM holdfast_fence")).toEqual([]);
  });

  it("rejects if the work caught the error of a statement, because nothing is committed then", async () => {
    const error = await rejectionOf(
      kind.guarded(leaseLike(7n), async (run) => {
        await write("lost")(run);
        await run("SELECT * FROM nowhere").catch(() => undefined);
      }),
    );
    expect(error).toBeInstanceOf(Error);
    expect(await notes()).toEqual([]);
  });

  it("runs the work again after a conflict, as often as `maxRetries` says", async () => {
    let calls = 0;
    const conflicting = async (run: Run): Promise<void> => {
      calls += 1;
      if (calls < 3) await run("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$");
      await write(`call ${calls}`)(run);
    };
    await kind.guarded(leaseLike(7n), conflicting);
    expect(await notes()).toEqual(["call 3"]);
    calls = 0;
    const error = await rejectionOf(
      kind.guarded(7n, conflicting, { resource: "a", maxRetries: 1 }),
    );
    expect(error).toMatchObject({ code: "40001" });
    expect(calls).toBe(2);
  });

  it.each(["read committed", "repeatable read", "serializable"] as const)(
    "sets isolation %s and the time limits for this transaction only",
    async (isolation) => {
      const settings = async (run: Run): Promise<unknown> =>
        (
          await run(
            "SELECT current_setting('transaction_isolation') AS level, " +
              "current_setting('lock_timeout') AS locks, " +
              "current_setting('idle_in_transaction_session_timeout') AS pauses",
          )
        )[0];
      const before = await settings(kind.run);
      const lease = { ...leaseLike(7n), remainingMs: () => 4_000.5 };
      expect(await kind.guarded(lease, settings, { isolation })).toEqual({
        level: isolation,
        locks: "4001ms",
        pauses: "4001ms",
      });
      expect(await kind.guarded(lease, settings, { timeout: "7s" })).toMatchObject({
        locks: "7s",
        pauses: "7s",
      });
      expect(await kind.guarded(5n, settings, { resource: "a" })).toMatchObject({ locks: "30s" });
      expect(await settings(kind.run)).toEqual(before);
    },
  );

  it("sends nothing for a lost lease, and for bad options", async () => {
    const locks = createLocks(memory());
    const lease = await locks.acquire("invoice:42");
    const lost = new LeaseLostError(["invoice:42"], "taken");
    const gone = { ...leaseLike(lease.fence), signal: AbortSignal.abort(lost) };
    expect(await rejectionOf(kind.guarded(gone, write("late")))).toBe(lost);
    await kind.guarded(lease, write("held"));
    await lease.release();
    await locks.close();
    for (const [options, option] of [
      [{ isolation: "chaos" }, "isolation"],
      [{ maxRetries: -1 }, "maxRetries"],
      [{ timeout: 0 }, "timeout"],
      [{ retry: 1 }, "retry"],
      [{ table: "" }, "table"],
    ] as const) {
      const error = await rejectionOf(kind.guarded(9n, write("x"), options as never));
      expect(error).toMatchObject({ code: "INVALID_OPTION", option });
    }
    expect(await notes()).toEqual(["held"]);
  });
});

describe("withGuard between Postgres sessions", () => {
  let pool: Pool;

  beforeAll(() => {
    pool = new Pool({ ...addressOf(databases.postgres), max: 8 });
  });

  afterAll(async () => {
    await pool.end();
  });

  const run: Run = async (sql) => (await pool.query<Record<string, unknown>>(sql)).rows;

  beforeEach(async () => {
    await createTables(run);
  });

  it.each(["read committed", "serializable"] as const)(
    "makes concurrent holders take turns, in rising order (%s)",
    async (isolation) => {
      const options = { isolation, maxRetries: 30, timeout: "30s" } as const;
      await Promise.all(
        [3n, 1n, 4n, 2n, 5n].map(async (fence) => {
          try {
            await withGuard(
              pool,
              leaseLike(fence),
              (tx) => tx.query("INSERT INTO note VALUES ($1)", [String(fence)]),
              options,
            );
          } catch (error) {
            expect(error).toBeInstanceOf(FenceRejectedError);
          }
        }),
      );
      const found = await run("SELECT text FROM note ORDER BY ctid");
      const written = found.map(({ text }) => Number(text));
      expect(written).toEqual(written.toSorted((a, b) => a - b));
      expect(written.at(-1)).toBe(5);
    },
  );

  it("waits for a lock no longer than its time limit", async () => {
    const other = await pool.connect();
    await other.query("BEGIN");
    await guardFence(other, leaseLike(6n));
    const late = withGuard(pool, leaseLike(7n), async () => "never", { timeout: 50 });
    expect(await rejectionOf(late)).toMatchObject({ code: "55P03" });
    await other.query("ROLLBACK");
    other.release();
    expect(await withGuard(pool, leaseLike(7n), async () => "now")).toBe("now");
  });

  it("lets the next holder in after one that pauses in its transaction", async () => {
    let resume = (): void => undefined;
    const paused = new Promise<void>((resolve) => {
      resume = resolve;
    });
    let isInside = (): void => undefined;
    const inside = new Promise<void>((resolve) => {
      isInside = resolve;
    });
    const holder = { ...leaseLike(7n), remainingMs: () => 200 };
    const earlier = rejectionOf(
      withGuard(pool, holder, async (tx) => {
        await tx.query("INSERT INTO note VALUES ('earlier')");
        isInside();
        await paused;
        await tx.query("INSERT INTO note VALUES ('too late')");
      }),
    );
    await inside;
    await withGuard(pool, leaseLike(8n), (tx) => tx.query("INSERT INTO note VALUES ('next')"));
    resume();
    expect(await earlier).toBeInstanceOf(Error);
    expect(await run("SELECT text FROM note")).toEqual([{ text: "next" }]);
    // The ended connection did not go back to the pool.
    await Promise.all(Array.from({ length: 8 }, () => pool.query("SELECT pg_sleep(0.05)")));
  });

  it("gives no connection back whose ROLLBACK failed", async () => {
    const own = new Pool({ ...addressOf(databases.postgres), max: 1 });
    const session = async (): Promise<unknown> =>
      (await own.query<{ id: number }>("SELECT pg_backend_pid() AS id")).rows[0]?.id;
    const before = await session();
    const work = async (tx: PoolClient): Promise<void> => {
      const query = tx.query.bind(tx) as (sql: string) => Promise<unknown>;
      tx.query = (async (sql: string) => {
        if (sql === "ROLLBACK") throw new Error("the packet was lost");
        return await query(sql);
      }) as never;
      throw new Error("changed my mind");
    };
    const error = await rejectionOf(withGuard(own, leaseLike(7n), work));
    expect(error).toMatchObject({ message: "changed my mind" });
    expect(await session()).not.toBe(before);
    await withGuard(pool, leaseLike(6n), async () => undefined);
    await own.end();
  });

  it("names a transaction of which nothing is left at COMMIT", async () => {
    const error = await rejectionOf(
      withGuard(pool, leaseLike(7n), async (tx) => {
        await tx.query("SELECT * FROM nowhere").catch(() => undefined);
      }),
    );
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ message: expect.stringContaining("rolled back") });
  });

  it("refuses anything but a pool or a client that begins transactions", async () => {
    const client = await pool.connect();
    const query: PostgresDatabase = (text, params) => pool.query(text, params);
    for (const db of [client, query, {}]) {
      const error = await rejectionOf(withGuard(db, 7n, async () => undefined));
      expect(error).toMatchObject({ code: "INVALID_OPTION", option: "db" });
    }
    client.release();
  });
});
