import { createRequire } from "node:module";
import type { Locks } from "../core/locks.ts";
import type { LockDefaults } from "../core/options.ts";
import { messageOf } from "../core/report/loggable.ts";
import type { Store } from "../core/store.ts";
import { createLocks } from "../index.ts";
import { postgres, type PostgresDatabase } from "../stores/postgres/index.ts";
import { Failure } from "./failure.ts";
import type { PostgresAddress } from "./postgres-address.ts";

/** A store in Postgres, and the function that ends its connections. */
export interface OpenedPostgres {
  readonly store: Store;
  readonly end: () => Promise<void>;
}

/** Pool of the package `pg`. */
type Pool = PostgresDatabase & {
  on(event: "error", listener: () => void): unknown;
  end(): Promise<void>;
};

interface PgPackage {
  readonly Pool: new (options: object) => Pool;
}

/** Limit for the time to connect, and for each reply; then the server counts as unreachable. */
const replyMs = 5_000;

/** Makes a store. Connects with its first request. Throws Failure if `pg` is not installed. */
export function openPostgres({ url, settings }: PostgresAddress): OpenedPostgres {
  const { Pool } = loadPg();
  const pool = new Pool({
    connectionString: url,
    connectionTimeoutMillis: replyMs,
    application_name: "holdfast-cli",
    max: 4,
  });
  // The store reports faults of its own statements. An idle connection may break at any time.
  pool.on("error", () => undefined);
  // The store checks the texts of the options, and names the invalid one in its error.
  const store = postgres(pool, { timeout: replyMs, ...settings } as object);
  return { store, end: () => pool.end() };
}

/**
 * Opens the store for one command. Throws the error of the store if it cannot be used, because a
 * wait would repeat it. With `withoutServers` it is opened all the same.
 */
export async function connectPostgres(
  address: PostgresAddress,
  defaults: LockDefaults | undefined,
  withoutServers: boolean,
): Promise<{ readonly locks: Locks; close(): Promise<void> }> {
  const { store, end } = openPostgres(address);
  try {
    const locks = createLocks(store, defaults);
    const close = async (): Promise<void> => {
      await locks.close();
      await end();
    };
    if (!withoutServers) await check(locks);
    return { locks, close };
  } catch (error) {
    await end();
    throw error;
  }
}

/** Throws if the store cannot be used now. A fault of the set-up rejects by itself. */
async function check(locks: Locks): Promise<void> {
  const { state, nodes } = await locks.inspect("holdfast");
  if (state !== "unknown") return;
  await locks.close();
  const cause = nodes[0]?.cause;
  throw new Failure("unavailable", messageOf(cause), cause);
}

/** Looks for `pg`, which is not part of Holdfast, in the working directory and beside this file. */
function loadPg(): PgPackage {
  for (const place of [`${process.cwd()}/package.json`, import.meta.url]) {
    try {
      return createRequire(place)("pg") as PgPackage;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "MODULE_NOT_FOUND") throw error;
    }
  }
  const what = "a store in Postgres needs the package pg, which is not installed: npm install pg";
  throw new Failure("unsupported", what);
}
