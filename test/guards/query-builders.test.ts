import { drizzle } from "drizzle-orm/node-postgres";
import { drizzle as drizzleMysql } from "drizzle-orm/mysql2";
import { eq, sql } from "drizzle-orm";
import { bigint, integer, pgTable, text } from "drizzle-orm/pg-core";
import knex from "knex";
import { CompiledQuery, Kysely, MysqlDialect, PostgresDialect } from "kysely";
import callbackMysql from "mysql2";
import type mysql from "mysql2/promise";
import type { Pool } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { FenceRejectedError } from "../../src/index.ts";
import * as mysqlGuards from "../../src/fencing/mysql.ts";
import * as postgresGuards from "../../src/fencing/postgres.ts";
import { shareDatabases } from "./databases.ts";
import { leaseLike, rejectionOf } from "./lease-like.ts";

const databases = shareDatabases("postgres", "mariadb");
let pool: Pool;
let mysqlPool: callbackMysql.Pool;
let promises: mysql.Pool;

beforeAll(() => {
  pool = databases.postgresPool;
  mysqlPool = callbackMysql.createPool(databases.mariadb);
  promises = mysqlPool.promise();
});

afterAll(() => promises.end());

beforeEach(async () => {
  const runs = [
    [postgresGuards, (text: string): Promise<unknown> => pool.query(text)],
    [mysqlGuards, (text: string): Promise<unknown> => promises.query(text)],
  ] as const;
  for (const [guards, run] of runs) {
    await run("DROP TABLE IF EXISTS invoice, holdfast_fence");
    await run("CREATE TABLE invoice (id INT PRIMARY KEY, note TEXT)");
    await run("INSERT INTO invoice (id) VALUES (42)");
    await run(guards.fenceColumnSql("invoice"));
    await run(guards.guardTableSql());
  }
});

const row = { table: "invoice", where: { id: 42 } };

async function postgresNote(): Promise<unknown> {
  return (await pool.query<{ note: unknown }>("SELECT note FROM invoice")).rows[0]?.note;
}

async function mysqlNote(): Promise<unknown> {
  const [rows] = await promises.query<mysql.RowDataPacket[]>("SELECT note FROM invoice");
  return rows[0]?.["note"];
}

describe("a query builder that is passed for a driver", () => {
  const builders: Readonly<Record<string, () => unknown>> = {
    Knex: () => knex({ client: "pg" }),
    Kysely: () => new Kysely({ dialect: new PostgresDialect({ pool }) }),
    Drizzle: () => drizzle(pool),
    // The methods of a Sequelize 6 instance by which it is known.
    Sequelize: () => ({ query: () => Promise.resolve([[], 0]), getQueryInterface: () => ({}) }),
  };

  it.each(Object.entries(builders))(
    "is refused with what to do instead: %s",
    async (name, create) => {
      const db = create() as never;
      const calls = {
        "postgres fencedUpdate": () => postgresGuards.fencedUpdate(db, 7n, { ...row, set: {} }),
        "postgres guardFence": () => postgresGuards.guardFence(db, leaseLike(7n)),
        "postgres withGuard": () =>
          postgresGuards.withGuard(db, leaseLike(7n), () => Promise.resolve()),
        "mysql fencedUpdate": () => mysqlGuards.fencedUpdate(db, 7n, { ...row, set: {} }),
        "mysql guardFence": () => mysqlGuards.guardFence(db, leaseLike(7n)),
        "mysql withGuard": () => mysqlGuards.withGuard(db, leaseLike(7n), () => Promise.resolve()),
      };
      for (const [call, run] of Object.entries(calls)) {
        const error = await rejectionOf(run());
        expect(error, call).toMatchObject({
          code: "INVALID_OPTION",
          option: "db",
          message: expect.stringContaining(`This is ${name}: `),
        });
      }
    },
  );
});

describe("the recipe for Knex", () => {
  it("runs builders in the transaction of withGuard, on Postgres", async () => {
    const db = knex({ client: "pg" });
    const write = (fence: bigint, note: string): Promise<unknown> =>
      postgresGuards.withGuard(pool, leaseLike(fence), async (tx) => {
        await db("invoice").where({ id: 42 }).update({ note }).connection(tx);
      });
    await write(7n, "a");
    expect(await rejectionOf(write(6n, "stale"))).toBeInstanceOf(FenceRejectedError);
    expect(await postgresNote()).toBe("a");
  });

  it("guards a transaction of Knex, on MySQL", async () => {
    const db = knex({ client: "mysql2", connection: databases.mariadb });
    const write = (fence: bigint, note: string): Promise<unknown> =>
      db.transaction(async (trx) => {
        await mysqlGuards.guardFence(
          (text, params) => trx.raw(text, params as never),
          leaseLike(fence),
        );
        await trx("invoice").where({ id: 42 }).update({ note });
      });
    await write(7n, "a");
    expect(await rejectionOf(write(6n, "stale"))).toBeInstanceOf(FenceRejectedError);
    expect(await mysqlNote()).toBe("a");
    await db.destroy();
  });
});

describe("the recipe for Kysely", () => {
  interface Tables {
    invoice: { id: number; note: string | null };
  }

  it("guards a transaction of Kysely, on Postgres", async () => {
    const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
    const write = (fence: bigint, note: string): Promise<unknown> =>
      db.transaction().execute(async (trx) => {
        const run: postgresGuards.PostgresQuery = (query, params) =>
          trx.executeQuery(CompiledQuery.raw(query, params));
        await postgresGuards.guardFence(run, leaseLike(fence));
        await trx.updateTable("invoice").set({ note }).where("id", "=", 42).execute();
        await postgresGuards.fencedUpdate(run, leaseLike(fence), { ...row, set: {} });
      });
    await write(7n, "a");
    expect(await rejectionOf(write(6n, "stale"))).toBeInstanceOf(FenceRejectedError);
    expect(await postgresNote()).toBe("a");
  });

  it("guards a transaction of Kysely, on MySQL", async () => {
    const db = new Kysely<Tables>({ dialect: new MysqlDialect({ pool: mysqlPool }) });
    const write = (fence: bigint, note: string): Promise<unknown> =>
      db.transaction().execute(async (trx) => {
        const run: mysqlGuards.MysqlQuery = (query, params) =>
          trx.executeQuery(CompiledQuery.raw(query, params));
        await mysqlGuards.guardFence(run, leaseLike(fence));
        await trx.updateTable("invoice").set({ note }).where("id", "=", 42).execute();
        await mysqlGuards.fencedUpdate(run, leaseLike(fence), { ...row, set: {} });
      });
    await write(7n, "a");
    expect(await rejectionOf(write(6n, "stale"))).toBeInstanceOf(FenceRejectedError);
    expect(await mysqlNote()).toBe("a");
  });
});

describe("the recipe for Drizzle", () => {
  const invoice = pgTable("invoice", {
    id: integer().primaryKey(),
    note: text(),
    fence: bigint({ mode: "bigint" }),
  });

  it("writes through drizzle(tx) in the transaction of withGuard, on Postgres", async () => {
    const write = (fence: bigint, note: string): Promise<unknown> =>
      postgresGuards.withGuard(pool, leaseLike(fence), async (tx) => {
        await drizzle(tx).update(invoice).set({ note }).where(eq(invoice.id, 42));
      });
    await write(7n, "a");
    expect(await rejectionOf(write(6n, "stale"))).toBeInstanceOf(FenceRejectedError);
    expect(await postgresNote()).toBe("a");
  });

  it("runs again after a conflict, whose error Drizzle wraps", async () => {
    let calls = 0;
    await postgresGuards.withGuard(pool, leaseLike(7n), async (tx) => {
      calls += 1;
      if (calls > 1) return;
      await drizzle(tx).execute(sql`DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$`);
    });
    expect(calls).toBe(2);
  });

  it("writes through drizzle(tx) in the transaction of withGuard, on MySQL", async () => {
    const write = (fence: bigint, note: string): Promise<unknown> =>
      mysqlGuards.withGuard(promises, leaseLike(fence), async (tx) => {
        await drizzleMysql(tx as never).execute(
          sql`UPDATE invoice SET note = ${note} WHERE id = 42`,
        );
      });
    await write(7n, "a");
    expect(await rejectionOf(write(6n, "stale"))).toBeInstanceOf(FenceRejectedError);
    expect(await mysqlNote()).toBe("a");
  });
});
