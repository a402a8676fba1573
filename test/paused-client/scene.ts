import { Redis } from "ioredis";
import mysql from "mysql2/promise";
import { Client } from "pg";
import * as mysqlGuards from "../../src/fencing/mysql.ts";
import * as postgresGuards from "../../src/fencing/postgres.ts";
import { fencedGet } from "../../src/fencing/redis.ts";
import { startMariadb } from "../../tools/databases/mariadb.mjs";
import { startPostgres } from "../../tools/databases/postgres.mjs";
import { startRedisServers } from "../../tools/redis/redis-server.mjs";
import type { Address, Addresses } from "./client-plan.ts";
import { type Held, serveDocuments } from "./documents.ts";

/** All servers of the clients, with access to what the clients wrote. */
export interface Scene {
  readonly addresses: Addresses;
  /** Inserts the rows of `resource`, because the clients only update. */
  prepare(resource: string): Promise<void>;
  /** Returns the guarded value and its fence for each target. */
  guarded(resource: string): Promise<Readonly<Record<string, Held>>>;
  /** Returns the unguarded value for each target. */
  plain(resource: string): Promise<Readonly<Record<string, unknown>>>;
  /** Returns the status codes of the HTTP server for `resource` so far. */
  statuses(resource: string): readonly number[];
  close(): Promise<void>;
}

/** Functions that undo the setup so far, called in reverse order, also if the setup failed. */
type Undo = (() => unknown)[];

export async function setScene(): Promise<Scene> {
  const undo: Undo = [];
  const close = async (): Promise<void> => {
    for (const step of undo.splice(0).toReversed()) await step();
  };
  try {
    return { ...(await set(undo)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function set(undo: Undo): Promise<Omit<Scene, "close">> {
  const [registerServer, ...nodes] = await startRedisServers(4);
  if (registerServer === undefined) throw new Error("there is no server for the register");
  undo.push(() => Promise.all([registerServer, ...nodes].map((server) => server.stop())));
  const register = new Redis({ host: "127.0.0.1", port: registerServer.port });
  undo.push(() => register.quit());
  await register.ping();
  const postgres = await openPostgres(undo);
  const mariadb = await openMariadb(undo);
  const documents = await serveDocuments();
  undo.push(() => documents.close());
  return {
    addresses: {
      lockPorts: nodes.map(({ port }) => port),
      postgres: postgres.address,
      mariadb: mariadb.address,
      registerPort: registerServer.port,
      url: documents.url,
    },
    prepare: async (resource) => {
      for (const { row } of [postgres, mariadb]) {
        await row(`INSERT INTO invoice (id) VALUES ('${resource}')`);
        await row(`INSERT INTO ledger (id) VALUES ('${resource}')`);
      }
    },
    guarded: async (resource) => {
      const { value, fence } = (await fencedGet(register, `guarded:${resource}`)) ?? {};
      return {
        "postgres row": await fencedRow(postgres, resource),
        "postgres guard table": await guardedRow(postgres, resource),
        "mariadb row": await fencedRow(mariadb, resource),
        "mariadb guard table": await guardedRow(mariadb, resource),
        redis: { value, fence: String(fence) },
        http: { value: undefined, fence: undefined, ...documents.held(`/guarded/${resource}`) },
      };
    },
    plain: async (resource) => ({
      postgres: await plainColumn(postgres, resource),
      mariadb: await plainColumn(mariadb, resource),
      redis: await register.get(`plain:${resource}`),
      http: documents.held(`/plain/${resource}`)?.value,
    }),
    statuses: (resource) => documents.statuses(`/guarded/${resource}`),
  };
}

interface Database {
  readonly address: Address;
  /** Returns the first row of a statement, with fences as texts. */
  readonly row: (sql: string) => Promise<Readonly<Record<string, unknown>>>;
}

async function openPostgres(undo: Undo): Promise<Database> {
  const server = await startPostgres();
  undo.push(() => server.stop());
  const { host, port, user, database } = server;
  const address = { host, port, user, database };
  const client = new Client(address);
  await client.connect();
  undo.push(() => client.end());
  await client.query("CREATE TABLE invoice (id TEXT PRIMARY KEY, note TEXT, unguarded TEXT)");
  await client.query(postgresGuards.fenceColumnSql("invoice"));
  await client.query("CREATE TABLE ledger (id TEXT PRIMARY KEY, note TEXT)");
  await client.query(postgresGuards.guardTableSql());
  return { address, row: async (sql) => (await client.query(sql)).rows[0] ?? {} };
}

async function openMariadb(undo: Undo): Promise<Database> {
  const server = await startMariadb();
  undo.push(() => server.stop());
  const { host, port, user } = server;
  const address = { host, port, user, database: "app" };
  const connection = await mysql.createConnection({
    ...address,
    database: server.database,
    supportBigNumbers: true,
    bigNumberStrings: true,
  });
  undo.push(() => connection.end());
  await connection.query("CREATE DATABASE app CHARACTER SET utf8mb4");
  await connection.query("USE app");
  const columns = "id VARCHAR(100) PRIMARY KEY, note TEXT";
  await connection.query(`CREATE TABLE invoice (${columns}, unguarded TEXT)`);
  await connection.query(mysqlGuards.fenceColumnSql("invoice"));
  await connection.query(`CREATE TABLE ledger (${columns})`);
  await connection.query(mysqlGuards.guardTableSql());
  return {
    address,
    row: async (sql) => {
      const [found] = await connection.query<mysql.RowDataPacket[]>(sql);
      return found[0] ?? {};
    },
  };
}

async function fencedRow({ row }: Database, id: string): Promise<Held> {
  const { note, fence } = await row(`SELECT note, fence FROM invoice WHERE id = '${id}'`);
  return { value: note, fence };
}

async function guardedRow({ row }: Database, id: string): Promise<Held> {
  const { note } = await row(`SELECT note FROM ledger WHERE id = '${id}'`);
  const { fence } = await row(`SELECT fence FROM holdfast_fence WHERE resource = '${id}'`);
  return { value: note, fence };
}

async function plainColumn({ row }: Database, id: string): Promise<unknown> {
  return (await row(`SELECT unguarded FROM invoice WHERE id = '${id}'`))["unguarded"];
}
