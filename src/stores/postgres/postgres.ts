import { InvalidOptionError } from "../../core/errors.ts";
import type { Store } from "../../core/store.ts";
import { type PostgresDatabase, queryOf } from "../../fencing/postgres-query.ts";
import { listenOf } from "./listener.ts";
import { type PostgresStoreOptions, resolvePostgresOptions, validityMsOf } from "./options.ts";
import { PostgresStore } from "./postgres-store.ts";

/**
 * Returns a store that keeps locks in tables of Postgres. `db` is a `pg` Pool, a `postgres` client,
 * PGlite, or a query function; the store never ends it. Run `migrate` or the SQL of `migrationSql`
 * once before: without its schema every call fails with a PostgresError.
 *
 * A lock is as safe as on a single Redis: it can be lost in a failover to a copy that lacks the
 * latest commits. Fences grow even then.
 */
export function postgres(db: PostgresDatabase, options: PostgresStoreOptions = {}): Store {
  const settings = resolvePostgresOptions(options);
  const query = queryOf(db);
  const { listen = db } = options;
  const listens = listen === false ? undefined : listenOf(listen);
  if (options.listen !== undefined && listen !== false && listens === undefined) {
    const expected = "a pg Pool, a postgres client or PGlite, or false";
    throw new InvalidOptionError("listen", expected, listen);
  }
  return {
    name: "postgres",
    capabilities: { fencing: true, multiResource: true },
    maxTtlMs: settings.maxTtlMs,
    validityMs: (ttlMs) => validityMsOf(ttlMs, settings.drift),
    open: (context) => new PostgresStore(query, listens, settings, context),
  };
}
