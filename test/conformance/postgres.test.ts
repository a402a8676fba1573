import { PGlite } from "@electric-sql/pglite";
import { Pool } from "pg";
import postgresJs from "postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import { queryOf } from "../../src/fencing/postgres-query.ts";
import { createLocks } from "../../src/index.ts";
import { migrate, postgres, type PostgresDatabase } from "../../src/stores/postgres/index.ts";
import type { ConformanceHarness } from "../../src/testing/index.ts";
import { type Pooler, startPgbouncer } from "../../tools/databases/pgbouncer.mjs";
import { type PostgresServer, startPostgres } from "../../tools/databases/postgres.mjs";
import { sideBySide } from "./run-suite.ts";

let server: PostgresServer;
let pool: Pool;
let sql: ReturnType<typeof postgresJs>;
let lite: PGlite;
let pooler: Pooler;
let pooled: Pool;

beforeAll(async () => {
  server = await startPostgres();
  pool = new Pool({ connectionString: server.url, max: 10 });
  sql = postgresJs(server.url, { max: 10, onnotice: () => undefined });
  pooler = await startPgbouncer(server);
  pooled = new Pool({ connectionString: pooler.url, max: 10 });
  lite = await PGlite.create();
  await Promise.all([migrate(pool), migrate(lite)]);
});

afterAll(async () => {
  await Promise.all([pool.end(), pooled.end(), sql.end(), lite.close()]);
  await pooler.stop();
  await server.stop();
});

function harness(namespace: string, db: () => PostgresDatabase): () => ConformanceHarness {
  return () => {
    // Many cases run on few cores, and no case tests how soon the server must reply.
    const make = () => postgres(db(), { timeout: "5s" });
    const { capabilities, maxTtlMs } = make();
    return {
      // A store for each manager, so that managers share the server and nothing in this process.
      open: async (defaults) => createLocks(make(), defaults),
      capabilities,
      maxTtlMs,
      namespace,
      shortTtlMs: 1_000,
      servesInOrder: true,
      cleanUp: async () => {
        await queryOf(db())("SELECT holdfast.sweep_v1(interval '0', 1000)", []);
      },
    };
  };
}

sideBySide({
  "Postgres through pg": harness("pg", () => pool),
  "Postgres through postgres": harness("postgres", () => sql),
  "Postgres behind PgBouncer in transaction mode": harness("pgbouncer", () => pooled),
  "Postgres in this process, by PGlite": harness("pglite", () => lite),
  "Postgres through a query function": harness("query", () => (text, params) => {
    return pool.query(text, params);
  }),
});

test("no case leaves a held lock or an entry in a queue", async () => {
  const held = "SELECT name FROM holdfast.locks WHERE owner IS NOT NULL AND expires > now()";
  expect((await pool.query(held)).rows).toEqual([]);
  expect((await pool.query("SELECT * FROM holdfast.queue WHERE lapses > now()")).rows).toEqual([]);
});
