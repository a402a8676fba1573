import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import mysql from "mysql2/promise";
import { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import * as mysqlGuards from "../../src/fencing/mysql.ts";
import * as postgresGuards from "../../src/fencing/postgres.ts";
import { type MariadbServer, startMariadb } from "../../tools/databases/mariadb.mjs";
import { type PostgresServer, startPostgres } from "../../tools/databases/postgres.mjs";
import { buildPackage, type BuiltPackage } from "./built-package.ts";

const script = fileURLToPath(new URL("frozen-transaction.mjs", import.meta.url));

let built: BuiltPackage;
let postgres: PostgresServer;
let mariadb: MariadbServer;
let pool: Pool;
let mysqlPool: mysql.Pool;

beforeAll(async () => {
  [built, postgres, mariadb] = await Promise.all([buildPackage(), startPostgres(), startMariadb()]);
  const { host, port, user } = mariadb;
  pool = new Pool(addressOf("postgres"));
  const setup = await mysql.createConnection({ host, port, user, database: mariadb.database });
  await setup.query("CREATE DATABASE app");
  await setup.end();
  mysqlPool = mysql.createPool(addressOf("mysql"));
  for (const sql of ["CREATE TABLE report (note TEXT)", "INSERT INTO report VALUES ('empty')"]) {
    await Promise.all([pool.query(sql), mysqlPool.query(sql)]);
  }
  await pool.query(postgresGuards.guardTableSql());
  await mysqlPool.query(mysqlGuards.guardTableSql());
});

afterAll(async () => {
  await Promise.all([pool.end(), mysqlPool.end()]);
  await Promise.all([postgres.stop(), mariadb.stop()]);
  built.remove();
});

function addressOf(kind: "postgres" | "mysql") {
  const { host, port, user, database } = kind === "postgres" ? postgres : mariadb;
  return { host, port, user, database: kind === "postgres" ? database : "app" };
}

const later = { fence: 8n, resources: ["report"] };
const update = "UPDATE report SET note = 'next'";

const kinds = {
  postgres: {
    next: () => postgresGuards.withGuard(pool, later, (tx) => tx.query(update)),
    note: async () => (await pool.query<{ note: string }>("SELECT note FROM report")).rows[0]?.note,
  },
  mysql: {
    next: () => mysqlGuards.withGuard(mysqlPool, later, (tx) => tx.query(update)),
    note: async () => {
      const [rows] = await mysqlPool.query<mysql.RowDataPacket[]>("SELECT note FROM report");
      return rows[0]?.["note"] as unknown;
    },
  },
} as const;

describe.each(["postgres", "mysql"] as const)("a holder frozen in its %s transaction", (kind) => {
  it("does not keep the next holder out, and cannot commit when it wakes", async () => {
    const plan = {
      packageFolder: built.folder,
      kind,
      address: addressOf(kind),
      fence: "7",
      remainingMs: 1_500,
    };
    const child = spawn(process.execPath, [script, JSON.stringify(plan)], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    const closed = once(child, "close");
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    expect((await lines.next()).value).toBe("inside");
    child.kill("SIGSTOP");
    // Waits for the guard row, which the frozen transaction has locked, until the server ends it.
    await kinds[kind].next();
    expect(await kinds[kind].note()).toBe("next");
    child.kill("SIGCONT");
    child.stdin.write("\n");
    expect((await lines.next()).value).toBe("failed");
    await closed;
    expect(await kinds[kind].note()).toBe("next");
  });
});
