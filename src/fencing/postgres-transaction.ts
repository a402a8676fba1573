import { InvalidOptionError, StoreError } from "../core/errors.ts";
import type { Fenced } from "./guard.ts";
import { sqlState } from "./driver-errors.ts";
import { guardFence } from "./postgres-guard-table.ts";
import { type PostgresDatabase } from "./postgres-query.ts";
import { recipeFor } from "./query-builders.ts";
import { guardedTransaction, type GuardedTransaction } from "./guarded-transaction.ts";
import type { WithGuardOptions } from "./guarded-transaction.ts";

/** Transaction that `withGuard` passes to `work`: of a `pg` Pool, of `postgres`, or of PGlite. */
export type PostgresTransaction<Db> = Db extends {
  connect: { (): Promise<infer Client>; (callback: never): unknown };
}
  ? Client
  : Db extends {
        begin: {
          (work: (tx: infer Tx) => never): unknown;
          (options: string, work: never): unknown;
        };
      }
    ? Tx
    : Db extends { transaction(work: (tx: infer Tx) => never): unknown }
      ? Tx
      : PostgresDatabase;

/** Session whose transaction has just begun. */
type Session = PostgresDatabase & object;

interface Client {
  query(text: string): Promise<{ readonly command?: string }>;
  release(destroy?: boolean): void;
  on?(event: "error", listener: () => void): unknown;
  off?(event: "error", listener: () => void): unknown;
}

/**
 * Runs `work` in a transaction that begins with `guardFence`: BEGIN, guard, work, COMMIT; ROLLBACK
 * if one of them fails. Write in `work` only through the transaction that `work` receives.
 *
 * The transaction is repeated after 40001 and 40P01, so `work` may run more than once. The server
 * ends the transaction if it waits for a lock, or pauses between two statements, for longer than
 * `timeout`. So a holder that is frozen in its transaction does not keep the guard row locked for
 * longer.
 *
 * Rejects with FenceRejectedError if the fence is stale, with the reason of `lease.signal` if the
 * lease is lost before the transaction begins, and with the server's error 55P03 after a lock wait.
 */
export async function withGuard<Db extends object, Result>(
  db: Db,
  fenced: Fenced | bigint,
  work: (tx: PostgresTransaction<Db>) => Promise<Result>,
  options: WithGuardOptions = {},
): Promise<Result> {
  const begin = beginOf(db);
  return await guardedTransaction(fenced, options, isRepeatable, (transaction) =>
    begin(transaction, async (tx) => {
      await guardFence(tx, fenced, transaction.guard);
      return await work(tx as PostgresTransaction<Db>);
    }),
  );
}

function isRepeatable(error: unknown): boolean {
  return ["40001", "40P01"].includes(sqlState(error) ?? "");
}

type Begin = <Result>(
  settings: GuardedTransaction,
  run: (tx: Session) => Promise<Result>,
) => Promise<Result>;

function beginOf(db: object): Begin {
  const given = db as Record<string, unknown>;
  const { begin, transaction, exec, connect, totalCount } = given;
  if (typeof begin === "function" && typeof given["unsafe"] === "function") {
    return (settings, run) => inPostgresJs(begin.bind(db) as PostgresJsBegin, settings, run);
  }
  if (typeof transaction === "function" && typeof exec === "function") {
    return (settings, run) => inPglite(transaction.bind(db) as PgliteTransaction, settings, run);
  }
  if (typeof connect === "function" && typeof totalCount === "number") {
    return (settings, run) => inPool(connect.bind(db) as () => Promise<Client>, settings, run);
  }
  throw new InvalidOptionError(
    "db",
    "a pg Pool, or a postgres or PGlite client; in a transaction of your own, call guardFence" +
      recipeFor(db),
    db,
  );
}

async function inPool<Result>(
  connect: () => Promise<Client>,
  settings: GuardedTransaction,
  run: (tx: Session) => Promise<Result>,
): Promise<Result> {
  const client = await connect();
  // If the server ends a connection that pauses, an `error` event without a listener would end the
  // process. The next statement on the connection rejects anyway.
  const ignore = (): void => undefined;
  client.on?.("error", ignore);
  let usable = true;
  try {
    await client.query(`BEGIN${isolationOf(settings)}; ${timeoutsOf(settings)}`);
    const result = await run(client as unknown as Session);
    const { command } = await client.query("COMMIT");
    if (command === "ROLLBACK") throw rolledBack();
    return result;
  } catch (error) {
    usable = await client.query("ROLLBACK").then(
      () => true,
      () => false,
    );
    throw error;
  } finally {
    client.off?.("error", ignore);
    // A connection that may still be inside a transaction must not return to the pool.
    client.release(!usable);
  }
}

type PostgresJsBegin = (...args: readonly unknown[]) => Promise<unknown>;

/**
 * Runs a transaction of `postgres`. `begin` rejects by itself if a statement failed, even if `work`
 * caught the error.
 */
async function inPostgresJs<Result>(
  begin: PostgresJsBegin,
  settings: GuardedTransaction,
  run: (tx: Session) => Promise<Result>,
): Promise<Result> {
  const level = isolationOf(settings).trim().toLowerCase();
  const body = async (tx: { unsafe(text: string): Promise<unknown> }): Promise<[Result]> => {
    await tx.unsafe(timeoutsOf(settings));
    // The result is returned in a list: `begin` awaits the items of a list, and must not do so with
    // a result that is itself a list.
    return [await run(tx as unknown as Session)];
  };
  const [result] = (await begin(level, body)) as [Result];
  return result;
}

type PgliteTransaction = <Result>(body: (tx: PgliteTx) => Promise<Result>) => Promise<Result>;

interface PgliteTx {
  exec(text: string): Promise<unknown>;
}

async function inPglite<Result>(
  transaction: PgliteTransaction,
  settings: GuardedTransaction,
  run: (tx: Session) => Promise<Result>,
): Promise<Result> {
  return await transaction(async (tx) => {
    const level = isolationOf(settings);
    const isolation = level === "" ? "" : `SET TRANSACTION${level}; `;
    await tx.exec(isolation + timeoutsOf(settings));
    const result = await run(tx as unknown as Session);
    // PGlite's COMMIT of a failed transaction rolls back without an error. This statement fails
    // then.
    await tx.exec("SELECT 1").catch((error: unknown) => {
      throw sqlState(error) === "25P02" ? rolledBack() : error;
    });
    return result;
  });
}

function isolationOf({ isolation }: GuardedTransaction): string {
  return isolation === undefined ? "" : ` ISOLATION LEVEL ${isolation.toUpperCase()}`;
}

function timeoutsOf({ timeoutMs }: GuardedTransaction): string {
  return (
    `SET LOCAL lock_timeout = ${timeoutMs}; ` +
    `SET LOCAL idle_in_transaction_session_timeout = ${timeoutMs}`
  );
}

function rolledBack(): StoreError {
  return new StoreError(
    "the transaction was rolled back: a statement in it failed, and `work` caught its error",
  );
}
