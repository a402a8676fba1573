import { InvalidOptionError, StoreError } from "../core/errors.ts";
import { errorNumber } from "./driver-errors.ts";
import { isObject } from "./guard.ts";
import { recipeFor } from "./query-builders.ts";

/**
 * Query function of your own, for a driver that is not recognised. It must run on one connection
 * and resolve to rows, or to a list whose first item is the rows.
 */
export type MysqlQuery = (sql: string, params: unknown[]) => PromiseLike<unknown>;

/** Connection of `mysql2` or `mysql2/promise`, or an object with the same methods. */
export interface MysqlConnection {
  query(sql: string): unknown;
  execute(sql: string, params: never): unknown;
}

/** Pool of `mysql2` or `mysql2/promise`. */
export interface MysqlPool extends MysqlConnection {
  getConnection(...callback: never): unknown;
}

export type MysqlDatabase = MysqlConnection | MysqlPool | MysqlQuery;

export type Row = Readonly<Record<string, unknown>>;

/** Sends SQL: `run` sends plain statements, `select` sends statements with parameters. */
export interface Session {
  /**
   * Pool, connection or function of the user. The results of table checks are kept for this object.
   */
  readonly owner: object;
  run(sql: string): Promise<void>;
  select(sql: string, params: readonly unknown[]): Promise<readonly Row[]>;
}

const deadlockNumber = 1213;
const deadlockTries = 4;

export interface PooledConnection {
  release(): void;
  destroy?(): void;
}

/** Runs `work` in the caller's open transaction, or for a pool in a transaction of its own. */
export async function inTransaction<Result>(
  db: MysqlDatabase,
  work: (session: Session) => Promise<Result>,
): Promise<Result> {
  const given = promised(db);
  if (isObject(given) && typeof given["getConnection"] === "function") {
    return await inOwnTransaction(given as unknown as PromisePool, db, work);
  }
  const session = sessionOf(given, db);
  await assertTransaction(session, "a pool, or a connection with an open transaction");
  return await work(session);
}

/**
 * Returns a session in the caller's open transaction. Rejects a pool, because each of its
 * statements may use another connection.
 */
export async function callersTransaction(db: MysqlDatabase): Promise<Session> {
  const given = promised(db);
  const expected = "a connection with an open transaction (the guard's lock ends with it)";
  if (isObject(given) && typeof given["getConnection"] === "function") {
    throw new InvalidOptionError("db", expected, "a pool");
  }
  const session = sessionOf(given, db);
  await assertTransaction(session, expected);
  return session;
}

/** Returns a session for a single statement, on any connection or pool. */
export function anySession(db: MysqlDatabase): Session {
  return sessionOf(promised(db), db);
}

/** Returns the time of the server, in ms since 1970. */
export async function mysqlMs(session: Session): Promise<number> {
  const text = "SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS CHAR) AS ms";
  return Number((await session.select(text, []))[0]?.["ms"]);
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

/** Returns the promise API of a pool. Throws InvalidOptionError for anything else. */
export function poolOf(db: object, expected: string): PromisePool {
  const given = promised(db as MysqlDatabase);
  if (isObject(given) && typeof given["getConnection"] === "function") {
    return given as unknown as PromisePool;
  }
  throw new InvalidOptionError("db", expected + recipeFor(db), db);
}

/** Runs `work` in a transaction of its own, and again if it was the victim of a deadlock. */
async function inOwnTransaction<Result>(
  pool: PromisePool,
  db: MysqlDatabase,
  work: (session: Session) => Promise<Result>,
): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await inOneTransaction(pool, db, work);
    } catch (error) {
      if (errorNumber(error) !== deadlockNumber || tries >= deadlockTries) throw error;
    }
  }
}

async function inOneTransaction<Result>(
  pool: PromisePool,
  db: MysqlDatabase,
  work: (session: Session) => Promise<Result>,
): Promise<Result> {
  const connection = await pool.getConnection();
  const session = sessionOf(connection, db);
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
    // A connection that may still be inside a transaction must not return to the pool.
    if (usable || connection.destroy === undefined) connection.release();
    else connection.destroy();
  }
}

/**
 * Throws InvalidOptionError if no transaction is open. MySQL drops a savepoint at once outside a
 * transaction, so RELEASE SAVEPOINT fails with error 1305. This check works on MySQL and MariaDB
 * and needs no privilege.
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

/** Returns the promise API of a callback-style mysql2 object, or `db` itself. */
function promised(db: MysqlDatabase): unknown {
  const given: unknown = db;
  if (isObject(given) && typeof given["promise"] === "function") return given["promise"]();
  return given;
}

function sessionOf(given: unknown, db: MysqlDatabase): Session {
  // mysql2/promise wraps a pooled connection anew each time; `connection` is the lasting object.
  const inner: unknown = isObject(db) ? (db as { connection?: unknown }).connection : undefined;
  const owner: object = isObject(inner) ? inner : db;
  const recipe = recipeFor(db);
  if (typeof given === "function" && recipe === "") {
    const query = given as MysqlQuery;
    return {
      owner,
      run: async (sql) => void (await query(sql, [])),
      select: async (sql, params) => rowsOf(await query(sql, [...params])),
    };
  }
  if (isObject(given)) {
    const { query, execute } = given;
    if (typeof query === "function" && typeof execute === "function") {
      return {
        owner,
        // `query`, because MySQL cannot prepare transaction statements.
        run: async (sql) => void (await query.call(given, sql)),
        // `execute` sends a prepared statement: values are never pasted into the SQL text.
        select: async (sql, params) => rowsOf(await execute.call(given, sql, [...params])),
      };
    }
  }
  throw new InvalidOptionError(
    "db",
    "a mysql2 connection or pool, or a function (sql, params) => Promise" + recipe,
    given,
  );
}

function rowsOf(result: unknown): readonly Row[] {
  const rows: unknown = Array.isArray(result) && Array.isArray(result[0]) ? result[0] : result;
  if (Array.isArray(rows)) return rows as readonly Row[];
  if (isObject(result) && Array.isArray(result["rows"])) return result["rows"] as readonly Row[];
  if (isObject(result)) return [];
  throw new StoreError("the query function returned no result");
}
