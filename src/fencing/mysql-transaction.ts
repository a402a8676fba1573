import { StoreError } from "../core/errors.ts";
import { errorNumber } from "./driver-errors.ts";
import { guardedTransaction, type GuardedTransaction } from "./guarded-transaction.ts";
import type { WithGuardOptions } from "./guarded-transaction.ts";
import type { Fenced } from "./guard.ts";
import { guardFence } from "./mysql-guard-table.ts";
import { anySession, type MysqlDatabase, poolOf } from "./mysql-session.ts";
import type { PooledConnection, Session } from "./mysql-session.ts";

/** Connection that `withGuard` passes to `work`: a connection of the pool, with promises. */
export type MysqlTransaction<Pool> = Pool extends {
  getConnection(): Promise<infer Connection>;
}
  ? Connection
  : Pool extends { promise(): { getConnection(): Promise<infer Connection> } }
    ? Connection
    : MysqlDatabase;

const savepoint = "holdfast_transaction";
/**
 * Error numbers after which a transaction is repeated: deadlock, and MariaDB's "record has changed
 * since last read".
 */
const repeatableNumbers: ReadonlySet<unknown> = new Set([1213, 1020]);

/**
 * Runs `work` in a transaction that begins with `guardFence`: START TRANSACTION, guard, work,
 * COMMIT; ROLLBACK if one of them fails. Write in `work` only through the connection that `work`
 * receives.
 *
 * The transaction is repeated after a deadlock, so `work` may run more than once. The server ends
 * the transaction if it waits for a lock, or pauses between two statements, for longer than
 * `timeout` (in whole seconds). So a holder that is frozen in its transaction does not keep the
 * guard row locked for longer.
 *
 * Rejects with FenceRejectedError if the fence is stale, with the reason of `lease.signal` if the
 * lease is lost before the transaction begins, and with the server's error 1205 after a lock wait.
 */
export async function withGuard<Pool extends object, Result>(
  pool: Pool,
  fenced: Fenced | bigint,
  work: (tx: MysqlTransaction<Pool>) => Promise<Result>,
  options: WithGuardOptions = {},
): Promise<Result> {
  const from = poolOf(pool, "a mysql2 pool; in a transaction of your own, call guardFence");
  const isRepeatable = (error: unknown): boolean => repeatableNumbers.has(errorNumber(error));
  return await guardedTransaction(fenced, options, isRepeatable, async (transaction) => {
    const connection = await from.getConnection();
    return await inTransaction(connection, transaction, async () => {
      await guardFence(connection, fenced, transaction.guard);
      await anySession(connection).run(`SAVEPOINT ${savepoint}`);
      return await work(connection as MysqlTransaction<Pool>);
    });
  });
}

async function inTransaction<Result>(
  connection: MysqlDatabase & PooledConnection,
  settings: GuardedTransaction,
  run: () => Promise<Result>,
): Promise<Result> {
  const session = anySession(connection);
  let usable = false;
  try {
    const restore = await setTimeouts(session, Math.ceil(settings.timeoutMs / 1_000));
    try {
      if (settings.isolation !== undefined) {
        await session.run(`SET TRANSACTION ISOLATION LEVEL ${settings.isolation.toUpperCase()}`);
      }
      await session.run("START TRANSACTION");
      const result = await run();
      await assertOpen(session);
      await session.run("COMMIT");
      usable = true;
      return result;
    } catch (error) {
      usable = await succeeds(session.run("ROLLBACK"));
      throw error;
    } finally {
      usable = usable && (await succeeds(session.run(restore)));
    }
  } finally {
    // A connection that may still be inside a transaction must not return to the pool.
    if (usable || connection.destroy === undefined) connection.release();
    else connection.destroy();
  }
}

/**
 * Throws StoreError if the transaction of the guard has ended: a deadlock rolls it back, and DDL
 * commits it. Later statements would have run outside of any transaction.
 */
async function assertOpen(session: Session): Promise<void> {
  try {
    await session.run(`RELEASE SAVEPOINT ${savepoint}`);
  } catch (error) {
    if (errorNumber(error) !== 1305) throw error;
    throw new StoreError(
      "the transaction ended inside `work`: DDL committed it, or a deadlock, whose error `work` " +
        "caught, rolled it back; statements after that were not guarded",
      { cause: error },
    );
  }
}

/** Sets the session's time limits. Returns the statement that restores them. */
async function setTimeouts(session: Session, seconds: number): Promise<string> {
  const [row] = await session.select(
    "SELECT @@SESSION.innodb_lock_wait_timeout AS locks, @@SESSION.wait_timeout AS pauses",
    [],
  );
  const set = (locks: unknown, pauses: unknown): string =>
    `SET SESSION innodb_lock_wait_timeout = ${Number(locks)}, wait_timeout = ${Number(pauses)}`;
  await session.run(set(seconds, seconds));
  return set(row?.["locks"], row?.["pauses"]);
}

async function succeeds(statement: Promise<void>): Promise<boolean> {
  return await statement.then(
    () => true,
    () => false,
  );
}
