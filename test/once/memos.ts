import mysql from "mysql2/promise";
import { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import {
  type Memo,
  memoryMemo,
  mysqlMemo,
  mysqlMemoSql,
  postgresMemo,
  postgresMemoSql,
  redisMemo,
} from "../../src/once/index.ts";
import { startMariadb } from "../../tools/databases/mariadb.mjs";
import { startPostgres } from "../../tools/databases/postgres.mjs";
import { dial } from "../support/redis-harness.ts";
import { type RedisServer, startRedis } from "../../tools/redis/redis-server.mjs";

/** A kind of memo, and how a process of its own reaches it. */
export interface MemoKind {
  readonly name: "postgres" | "mysql" | "redis" | "memory";
  /** Address of the server. */
  url: string;
  /** Returns a memo with its own table or prefix for `place`. */
  open(place: string): Promise<Memo>;
}

/** Starts the servers of the memos for a test file. */
export function shareMemos(): readonly MemoKind[] {
  const redis: MemoKind = {
    name: "redis",
    url: "",
    open: async (place) =>
      redisMemo(dial(Number(new URL(redis.url).port)), { prefix: `${place}:` }),
  };
  const postgres: MemoKind = {
    name: "postgres",
    url: "",
    async open(place) {
      await pg.query(postgresMemoSql(place));
      return postgresMemo(pg, { table: place });
    },
  };
  const mariadb: MemoKind = {
    name: "mysql",
    url: "",
    async open(place) {
      await pool.query(mysqlMemoSql(place));
      return mysqlMemo(pool, { table: place });
    },
  };
  const memory: MemoKind = { name: "memory", url: "", open: async () => memoryMemo() };
  let pg: Pool;
  let pool: mysql.Pool;
  const stops: (() => Promise<unknown>)[] = [];
  beforeAll(async () => {
    const [server, postgresServer, mariadbServer]: [RedisServer, ...Servers] = await Promise.all([
      startRedis(),
      startPostgres(),
      startMariadb(),
    ]);
    const { user, host, port, database } = mariadbServer;
    redis.url = server.url;
    postgres.url = postgresServer.url;
    mariadb.url = `mysql://${user}@${host}:${port}/${database}`;
    // Without a timer for idle connections, which would outlive a test.
    pg = new Pool({ connectionString: postgres.url, max: 4, idleTimeoutMillis: 0 });
    pool = mysql.createPool(mariadb.url);
    stops.push(
      async () => await Promise.all([pg.end(), pool.end()]),
      async () => await Promise.all([server.stop(), postgresServer.stop(), mariadbServer.stop()]),
    );
  });
  afterAll(async () => {
    for (const stop of stops) await stop();
  });
  return [redis, postgres, mariadb, memory];
}

type Servers = [
  Awaited<ReturnType<typeof startPostgres>>,
  Awaited<ReturnType<typeof startMariadb>>,
];
