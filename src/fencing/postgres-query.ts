import { InvalidOptionError, StoreError } from "../core/errors.ts";
import { isObject } from "./guard.ts";
import { recipeFor } from "./query-builders.ts";

/** Query function of your own, for a driver that is not recognised. */
export type PostgresQuery = (
  text: string,
  params: unknown[],
) => PromiseLike<{ readonly rows: readonly unknown[] } | readonly unknown[]>;

/**
 * Object that runs statements: a `pg` Pool, Client or PoolClient, PGlite or its transaction,
 * `postgres` (porsager) or its transaction, or a query function.
 */
export type PostgresDatabase =
  | { query(text: string, params?: unknown[]): PromiseLike<{ readonly rows: readonly unknown[] }> }
  | { unsafe(text: string, params?: unknown[]): PromiseLike<readonly unknown[]> }
  | PostgresQuery;

export type Row = Readonly<Record<string, unknown>>;
export type RunQuery = (text: string, params: unknown[]) => Promise<readonly Row[]>;

/**
 * Recognises the driver by its methods. Sends nothing. Throws InvalidOptionError for other objects.
 */
export function queryOf(db: PostgresDatabase): RunQuery {
  const given: unknown = db;
  const recipe = recipeFor(db);
  if (recipe === "" && (isObject(given) || typeof given === "function")) {
    const { unsafe, query } = given as { unsafe?: unknown; query?: unknown };
    // `unsafe` is checked first, because a `postgres` client is itself a function (the template
    // tag).
    if (typeof unsafe === "function") return bind(given, unsafe);
    if (typeof query === "function") return bind(given, query);
    if (typeof given === "function") return bind(undefined, given);
  }
  throw new InvalidOptionError(
    "db",
    "a pg, PGlite or postgres client, or a function (text, params) => Promise of rows" + recipe,
    db,
  );
}

/** Time of the server in ms since 1970, the same in every part of a statement. */
export const statementMsSql = "(extract(epoch FROM statement_timestamp()) * 1000)::bigint";

/** Returns the time of the server, in ms since 1970. */
export async function postgresMs(query: RunQuery): Promise<number> {
  const text = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint::text AS ms";
  return Number((await query(text, []))[0]?.["ms"]);
}

/** Returns the name in double quotes. Double quotes inside the name are doubled. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export function quotedTable(parts: readonly string[]): string {
  return parts.map(quoted).join(".");
}

function bind(self: unknown, method: unknown): RunQuery {
  const call = method as (text: string, params: unknown[]) => unknown;
  return async (text, params) => rowsOf(await call.call(self, text, params));
}

function rowsOf(result: unknown): readonly Row[] {
  if (Array.isArray(result)) return result as readonly Row[];
  if (isObject(result) && Array.isArray(result["rows"])) return result["rows"] as readonly Row[];
  throw new StoreError("the query function returned neither rows nor an object with `rows`");
}
