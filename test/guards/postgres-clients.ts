import { PGlite } from "@electric-sql/pglite";
import { Pool } from "pg";
import postgres from "postgres";
import type { PostgresDatabase } from "../../src/fencing/postgres.ts";
import type { PostgresServer } from "../../tools/databases/postgres.mjs";

/** One way to reach Postgres. Each guard is tested through all of them. */
export interface PostgresClient {
  readonly name: string;
  /** For single statements. */
  readonly db: PostgresDatabase;
  /** Runs SQL that needs no parameters. */
  run(text: string): Promise<readonly Record<string, unknown>[]>;
  /** Commits when `work` resolves, rolls back when it rejects. */
  transaction<Result>(work: (db: PostgresDatabase) => Promise<Result>): Promise<Result>;
  close(): Promise<void>;
}

export function pgClient(server: PostgresServer, asFunction = false): PostgresClient {
  const pool = new Pool({ ...addressOf(server), max: 20 });
  return {
    name: asFunction ? "a query function" : "pg",
    db: asFunction ? (text, params) => pool.query(text, params) : pool,
    run: async (text) => (await pool.query<Record<string, unknown>>(text)).rows,
    transaction: async (work) => {
      const client = await pool.connect();
      try {
        await client.query("BEGIN");
        const result = await work(
          asFunction ? async (text, params) => (await client.query(text, params)).rows : client,
        );
        await client.query("COMMIT");
        return result;
      } catch (error) {
        await client.query("ROLLBACK");
        throw error;
      } finally {
        client.release();
      }
    },
    close: () => pool.end(),
  };
}

export function postgresJsClient(server: PostgresServer): PostgresClient {
  const sql = postgres({ ...addressOf(server), max: 20, onnotice: () => undefined });
  return {
    name: "postgres",
    db: sql,
    run: async (text) => await sql.unsafe(text),
    transaction: async (work) => (await sql.begin((tx) => work(tx))) as never,
    close: () => sql.end(),
  };
}

export async function pgliteClient(): Promise<PostgresClient> {
  const lite = await PGlite.create();
  return {
    name: "PGlite",
    db: lite,
    run: async (text) => (await lite.query<Record<string, unknown>>(text)).rows,
    transaction: async (work) => await lite.transaction((tx) => work(tx)),
    close: () => lite.close(),
  };
}

type Connect = (server: PostgresServer) => PostgresClient | Promise<PostgresClient>;

/** Each kind of client, for `describe.each`. */
export const postgresClients: readonly (readonly [string, Connect])[] = [
  ["pg", (server) => pgClient(server)],
  ["a query function", (server) => pgClient(server, true)],
  ["postgres", (server) => postgresJsClient(server)],
  ["PGlite", () => pgliteClient()],
];

/** Returns what clients need to reach the server, and nothing else. */
export function addressOf(server: PostgresServer): {
  host: string;
  port: number;
  user: string;
  database: string;
} {
  const { host, port, user, database } = server;
  return { host, port, user, database };
}
