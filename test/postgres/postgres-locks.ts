import { Pool } from "pg";
import { createLocks, type LockDefaults, type Locks } from "../../src/index.ts";
import { postgres, type PostgresStoreOptions } from "../../src/stores/postgres/index.ts";
import type { PostgresServer } from "../../tools/databases/postgres.mjs";

/** Managers and pools of one test file. `close` ends all of them. */
export class PostgresClients {
  readonly #closing: (() => Promise<unknown>)[] = [];

  pool(server: Pick<PostgresServer, "url">, max = 5): Pool {
    const pool = new Pool({ connectionString: server.url, max });
    // A server that a test kills takes idle connections with it.
    pool.on("error", () => undefined);
    this.#closing.push(() => pool.end());
    return pool;
  }

  locks(pool: Pool, options: PostgresStoreOptions = {}, defaults: LockDefaults = {}): Locks {
    const locks = createLocks(postgres(pool, options), defaults);
    this.#closing.push(() => locks.close());
    return locks;
  }

  async close(): Promise<void> {
    for (const close of this.#closing.splice(0).toReversed()) await close();
  }
}
