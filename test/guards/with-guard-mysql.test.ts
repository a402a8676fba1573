import callbackMysql from "mysql2";
import mysql from "mysql2/promise";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { FenceRejectedError, LeaseLostError, StoreError } from "../../src/index.ts";
import { guardFence, guardTableSql, withGuard } from "../../src/fencing/mysql.ts";
import { shareDatabases } from "./databases.ts";
import { leaseLike, rejectionOf } from "./lease-like.ts";

const databases = shareDatabases("mariadb");
let pool: mysql.Pool;

beforeAll(() => {
  pool = databases.mariadbPool;
});

beforeEach(async () => {
  await pool.query("DROP TABLE IF EXISTS holdfast_fence, note, hot");
  await pool.query(guardTableSql());
  await pool.query("CREATE TABLE note (id SERIAL, text VARCHAR(40))");
  await pool.query("CREATE TABLE hot (id INT PRIMARY KEY, n INT)");
  await pool.query("INSERT INTO hot VALUES (1, 0), (2, 0)");
});

async function rows(sql: string): Promise<readonly Record<string, unknown>[]> {
  const [found] = await pool.query<mysql.RowDataPacket[]>(sql);
  return found.map((row) => ({ ...row }));
}

const notes = async (): Promise<unknown[]> =>
  (await rows("SELECT text FROM note ORDER BY id")).map(({ text }) => text);

const note =
  (text: string) =>
  async (tx: mysql.PoolConnection): Promise<string> => {
    await tx.execute("INSERT INTO note (text) VALUES (?)", [text]);
    return text;
  };

describe("withGuard on MariaDB", () => {
  it("commits the work with its fence, through a promise pool and a callback pool", async () => {
    expect(await withGuard(pool, leaseLike(7n), note("a"))).toBe("a");
    const callbacks = callbackMysql.createPool({ ...databases.mariadb, connectionLimit: 1 });
    await withGuard(callbacks, leaseLike(7n), note("b"));
    await callbacks.promise().end();
    expect(await notes()).toEqual(["a", "b"]);
    expect(await rows("SELECT CAST(fence AS CHAR) AS fence FROM holdfast_fence")).toEqual([
      { fence: "7" },
    ]);
  });

  it("does not run the work for a stale fence or a lost lease, and rolls failed work back", async () => {
    await withGuard(pool, leaseLike(9n), note("newer"));
    const stale = await rejectionOf(withGuard(pool, leaseLike(8n), note("stale")));
    expect(stale).toBeInstanceOf(FenceRejectedError);
    const lost = new LeaseLostError(["invoice:42"], "expired");
    const gone = { ...leaseLike(10n), signal: AbortSignal.abort(lost) };
    expect(await rejectionOf(withGuard(pool, gone, note("lost")))).toBe(lost);
    const failed = withGuard(pool, leaseLike(10n), async (tx) => {
      await note("undone")(tx);
      throw new Error("changed my mind");
    });
    expect(await rejectionOf(failed)).toMatchObject({ message: "changed my mind" });
    expect(await notes()).toEqual(["newer"]);
    await withGuard(pool, leaseLike(9n), note("fence 10 was undone"));
  });

  it.each(["READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"])(
    "sets isolation %s and the time limits for this transaction only",
    async (level) => {
      const own = mysql.createPool({ ...databases.mariadb, connectionLimit: 1 });
      await own.query("SET SESSION innodb_lock_wait_timeout = 33, wait_timeout = 44");
      const limits = async (tx: Pick<mysql.Pool, "query">): Promise<unknown> => {
        const [found] = await tx.query<mysql.RowDataPacket[]>(
          "SELECT @@innodb_lock_wait_timeout AS locks, @@wait_timeout AS pauses",
        );
        return { ...found[0] };
      };
      const isolation = level.replace("-", " ").toLowerCase() as "serializable";
      const lease = { ...leaseLike(7n), remainingMs: () => 4_001 };
      const inside = await withGuard(own, lease, (tx) => limits(tx), { isolation });
      expect(inside).toEqual({ locks: 5, pauses: 5 });
      expect(await limits(own)).toEqual({ locks: 33, pauses: 44 });
      const failed = withGuard(own, lease, () => Promise.reject(new Error("failed")));
      expect(await rejectionOf(failed)).toMatchObject({ message: "failed" });
      expect(await limits(own)).toEqual({ locks: 33, pauses: 44 });
      await own.end();
    },
  );

  it("runs the work again if it was the victim of a deadlock", async () => {
    const other = await pool.getConnection();
    await other.beginTransaction();
    await other.query("INSERT INTO note (text) VALUES ('heavy'), ('heavier'), ('heaviest')");
    await other.query("UPDATE hot SET n = 1 WHERE id = 2");
    let calls = 0;
    let others: Promise<unknown> = Promise.resolve();
    await withGuard(
      pool,
      leaseLike(7n),
      async (tx) => {
        calls += 1;
        await tx.query("UPDATE hot SET n = n + 1 WHERE id = 1");
        if (calls === 1) {
          others = other.query("UPDATE hot SET n = 1 WHERE id = 1").then(() => other.commit());
        }
        await tx.query("UPDATE hot SET n = n + 1 WHERE id = 2");
      },
      { timeout: "30s" },
    );
    await others;
    other.release();
    expect(calls).toBe(2);
    expect(await rows("SELECT n FROM hot")).toEqual([{ n: 2 }, { n: 2 }]);
  });

  it("waits for a lock no longer than its time limit", async () => {
    const other = await pool.getConnection();
    await other.beginTransaction();
    await guardFence(other, leaseLike(6n));
    const late = withGuard(pool, leaseLike(7n), note("never"), { timeout: 50 });
    expect(await rejectionOf(late)).toMatchObject({ errno: 1205 });
    await other.rollback();
    other.release();
    await withGuard(pool, leaseLike(7n), note("now"));
    expect(await notes()).toEqual(["now"]);
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
    const holder = { ...leaseLike(7n), remainingMs: () => 900 };
    const earlier = rejectionOf(
      withGuard(pool, holder, async (tx) => {
        await note("earlier")(tx);
        isInside();
        await paused;
        await note("too late")(tx);
      }),
    );
    await inside;
    await withGuard(pool, leaseLike(8n), note("next"));
    resume();
    expect(await earlier).toBeInstanceOf(Error);
    expect(await notes()).toEqual(["next"]);
  });

  it.each(["ROLLBACK", "SET SESSION"])(
    "gives no connection back whose %s failed",
    async (failing) => {
      const own = mysql.createPool({ ...databases.mariadb, connectionLimit: 1 });
      const session = async (): Promise<unknown> => {
        const [found] = await own.query<mysql.RowDataPacket[]>("SELECT CONNECTION_ID() AS id");
        return found[0]?.["id"];
      };
      const before = await session();
      let broken = false;
      const unreliable = {
        getConnection: async (): Promise<mysql.PoolConnection> => {
          const connection = await own.getConnection();
          const query = connection.query.bind(connection) as (sql: string) => Promise<unknown>;
          connection.query = (async (sql: string) => {
            if (broken && sql.startsWith(failing)) throw new Error("the packet was lost");
            return await query(sql);
          }) as never;
          return connection;
        },
      };
      const error = await rejectionOf(
        withGuard(unreliable, leaseLike(7n), () => {
          broken = true;
          return Promise.reject(new Error("changed my mind"));
        }),
      );
      expect(error).toMatchObject({ message: "changed my mind" });
      expect(await session()).not.toBe(before);
      await withGuard(pool, leaseLike(6n), note("the row is free"));
      await own.end();
    },
  );

  it.each([
    ["DDL commits it", "CREATE TABLE IF NOT EXISTS made (id INT)"],
    ["it is rolled back", "ROLLBACK"],
  ])("rejects if the transaction ended inside the work: %s", async (_, sql) => {
    const ended = withGuard(pool, leaseLike(7n), async (tx) => {
      await tx.query(sql);
      await note("not guarded")(tx);
    });
    const error = await rejectionOf(ended);
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ message: expect.stringContaining("ended inside `work`") });
  });

  it("refuses anything but a pool, and bad options", async () => {
    const connection = await pool.getConnection();
    for (const db of [connection, {}, () => undefined]) {
      const error = await rejectionOf(withGuard(db, 7n, async () => undefined));
      expect(error).toMatchObject({ code: "INVALID_OPTION", option: "db" });
    }
    connection.release();
    const bad = withGuard(pool, leaseLike(7n), note("x"), { isolation: "chaos" as never });
    expect(await rejectionOf(bad)).toMatchObject({ option: "isolation" });
  });
});
