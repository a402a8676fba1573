import { Redis } from "ioredis";
import mysql from "mysql2/promise";
import { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import { type MariadbServer, startMariadb } from "../../tools/databases/mariadb.mjs";
import { type PostgresServer, startPostgres } from "../../tools/databases/postgres.mjs";
import { type RedisServer, startRedis } from "../../tools/redis/redis-server.mjs";

/** How a client of MariaDB reaches the database `app` of the tests. */
export interface MariadbAddress {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
}

/** Servers of a test file, each with clients. Those that the file did not name are not there. */
export class Databases {
  #postgres: { readonly server: PostgresServer; readonly pool: Pool } | undefined;
  #mariadb: { readonly address: MariadbAddress; readonly pool: mysql.Pool } | undefined;
  #redis: { readonly server: RedisServer; readonly client: Redis } | undefined;
  readonly #stops: (() => Promise<unknown>)[] = [];

  get postgres(): PostgresServer {
    return present(this.#postgres).server;
  }

  get postgresPool(): Pool {
    return present(this.#postgres).pool;
  }

  get mariadb(): MariadbAddress {
    return present(this.#mariadb).address;
  }

  get mariadbPool(): mysql.Pool {
    return present(this.#mariadb).pool;
  }

  get redis(): RedisServer {
    return present(this.#redis).server;
  }

  get redisClient(): Redis {
    return present(this.#redis).client;
  }

  async startPostgres(): Promise<void> {
    const server = await startPostgres();
    const { host, port, user, database } = server;
    const pool = new Pool({ host, port, user, database, max: 20 });
    this.#postgres = { server, pool };
    this.#stops.push(() => pool.end().then(() => server.stop()));
  }

  async startMariadb(): Promise<void> {
    const server: MariadbServer = await startMariadb();
    this.#stops.push(() => server.stop());
    const { host, port, user } = server;
    const setup = await mysql.createConnection({ host, port, user, database: server.database });
    await setup.query("CREATE DATABASE app CHARACTER SET utf8mb4");
    await setup.end();
    const address = { host, port, user, database: "app" };
    const pool = mysql.createPool({ ...address, connectionLimit: 12 });
    this.#mariadb = { address, pool };
    this.#stops.push(() => pool.end());
  }

  async startRedis(): Promise<void> {
    const server = await startRedis();
    this.#stops.push(() => server.stop());
    const client = new Redis(server.url, { lazyConnect: true });
    await client.connect();
    this.#redis = { server, client };
    this.#stops.push(() => client.quit());
  }

  /** Ends clients before their servers. */
  async stop(): Promise<void> {
    for (const stop of this.#stops.toReversed()) await stop();
  }
}

function present<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error("the test file does not share this server");
  return value;
}

/** Starts servers for the tests of the file that calls it, and stops them after its last test. */
export function shareDatabases(...names: readonly ("postgres" | "mariadb" | "redis")[]): Databases {
  const databases = new Databases();
  beforeAll(async () => {
    await Promise.all(
      names.map((name) => {
        if (name === "postgres") return databases.startPostgres();
        return name === "mariadb" ? databases.startMariadb() : databases.startRedis();
      }),
    );
  });
  afterAll(() => databases.stop());
  return databases;
}
