import { InvalidOptionError, StoreError } from "../core/errors.ts";
import { isObject } from "./guard.ts";

/**
 * A query function of your own, for a driver that is not recognised. It runs on one connection
 * and resolves to rows, or to a list whose first item is the rows.
 */
export type MysqlQuery = (sql: string, params: unknown[]) => PromiseLike<unknown>;

/** A connection of `mysql2` or `mysql2/promise`, or what looks like one. */
export interface MysqlConnection {
  query(sql: string): unknown;
  execute(sql: string, params: never): unknown;
}

/** A pool of `mysql2` or `mysql2/promise`. */
export interface MysqlPool extends MysqlConnection {
  getConnection(...callback: never): unknown;
}

export type MysqlDatabase = MysqlConnection | MysqlPool | MysqlQuery;

export type Row = Readonly<Record<string, unknown>>;

/** One connection: plain statements, and statements with parameters. */
export interface Session {
  run(sql: string): Promise<void>;
  select(sql: string, params: readonly unknown[]): Promise<readonly Row[]>;
}

interface PooledConnection {
  release(): void;
  destroy?(): void;
}

/** Runs `work` in the caller's transaction, or for a pool in a transaction of its own. */
export async function inTransaction<Result>(
  db: MysqlDatabase,
  work: (session: Session) => Promise<Result>,
): Promise<Result> {
  const given = promised(db);
  if (isObject(given) && typeof given["getConnection"] === "function") {
    return await inOwnTransaction(given as unknown as PromisePool, work);
  }
  const session = sessionOf(given);
  await assertTransaction(session, "a pool, or a connection with an open transaction");
  return await work(session);
}

/** The caller's open transaction. A pool has none: each of its statements may go elsewhere. */
export async function callersTransaction(db: MysqlDatabase): Promise<Session> {
  const given = promised(db);
  const expected = "a connection with an open transaction (the guard's lock ends with it)";
  if (isObject(given) && typeof given["getConnection"] === "function") {
    throw new InvalidOptionError("db", expected, "a pool");
  }
  const session = sessionOf(given);
  await assertTransaction(session, expected);
  return session;
}

/** For a statement of its own, on any connection. */
export function anySession(db: MysqlDatabase): Session {
  return sessionOf(promised(db));
}

/** The server's error number, which does not change with its language. */
export function errorNumber(error: unknown): number | undefined {
  return isObject(error) && typeof error["errno"] === "number" ? error["errno"] : undefined;
}

export function quoted(name: string): string {
  return `\`${name.replaceAll("`", "``")}\``;
}

export function quotedTable(parts: readonly string[]): string {
  return parts.map(quoted).join(".");
}

interface PromisePool {
  getConnection(): Promise<MysqlConnection & PooledConnection>;
}

async function inOwnTransaction<Result>(
  pool: PromisePool,
  work: (session: Session) => Promise<Result>,
): Promise<Result> {
  const connection = await pool.getConnection();
  const session = sessionOf(connection);
  let usable = true;
  try {
    await session.run("START TRANSACTION");
    const result = await work(session);
    await session.run("COMMIT");
    return result;
  } catch (error) {
    usable = await session.run("ROLLBACK").then(
      () => true,
      () => false,
    );
    throw error;
  } finally {
    // A connection that may still be inside a transaction must not go back to the pool.
    if (usable || connection.destroy === undefined) connection.release();
    else connection.destroy();
  }
}

/**
 * A savepoint outside of a transaction is forgotten at once, and then releasing it is an error:
 * the one way to ask that MySQL and MariaDB share and that needs no privilege.
 */
async function assertTransaction(session: Session, expected: string): Promise<void> {
  await session.run("SAVEPOINT holdfast_guard");
  try {
    await session.run("RELEASE SAVEPOINT holdfast_guard");
  } catch (error) {
    if (errorNumber(error) !== 1305) throw error;
    throw new InvalidOptionError("db", expected, "one without");
  }
}

/** The callback flavour of mysql2 hands out its promise flavour. */
function promised(db: MysqlDatabase): unknown {
  const given: unknown = db;
  if (isObject(given) && typeof given["promise"] === "function") return given["promise"]();
  return given;
}

function sessionOf(given: unknown): Session {
  if (typeof given === "function") {
    const query = given as MysqlQuery;
    return {
      run: async (sql) => void (await query(sql, [])),
      select: async (sql, params) => rowsOf(await query(sql, [...params])),
    };
  }
  if (isObject(given)) {
    const { query, execute } = given;
    if (typeof query === "function" && typeof execute === "function") {
      return {
        // Transaction statements cannot be prepared on MySQL.
        run: async (sql) => void (await query.call(given, sql)),
        // Prepared: values reach the server as values and are never pasted into the text.
        select: async (sql, params) => rowsOf(await execute.call(given, sql, [...params])),
      };
    }
  }
  throw new InvalidOptionError(
    "db",
    "a mysql2 connection or pool, or a function (sql, params) => Promise",
    given,
  );
}

function rowsOf(result: unknown): readonly Row[] {
  const rows: unknown = Array.isArray(result) && Array.isArray(result[0]) ? result[0] : result;
  if (Array.isArray(rows)) return rows as readonly Row[];
  if (isObject(result)) return [];
  throw new StoreError("the query function returned no result");
}
