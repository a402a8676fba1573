import { StoreError } from "../core/errors.ts";
import { errorNumber } from "./driver-errors.ts";
import { rejection, subjectOf, type Fenced } from "./guard.ts";
import { loweringOf, type LowerFenceResult } from "./lower-fence.ts";
import { anySession, inTransaction, mysqlMs } from "./mysql-session.ts";
import type { MysqlDatabase, Session } from "./mysql-session.ts";
import { checkScalars, deleteRows, insertRow, lockedFences } from "./mysql-statements.ts";
import { lowerRows, updateRows } from "./mysql-statements.ts";
import { checkTable } from "./mysql-table.ts";
import { plausibleFence } from "./plausible-fence.ts";
import { checkedRow, checkedUpdate, checkedUpsert, type CheckedRow } from "./sql-row.ts";
import type { FencedDeleteResult, FencedRowDelete, FencedUpdate } from "./sql-row.ts";
import type {
  FencedUpdateResult,
  FencedUpsert,
  FencedUpsertResult,
  LoweredRow,
} from "./sql-row.ts";

/**
 * Updates a row that carries its own fence. Accepts if the fence is not smaller than the row's, and
 * stores it in the row. A pool runs a short transaction of its own, and repeats it after a
 * deadlock; a connection with an open transaction runs the update in that transaction.
 *
 * If `where` matches several rows, all of them change or, if one has a greater fence, none. Rejects
 * with FenceRejectedError if the fence is stale, with FenceAheadError if it is greater than
 * `maxFenceAhead` allows, and with StoreError if the table has no transactions or the fence column
 * is no BIGINT.
 */
export async function fencedUpdate(
  db: MysqlDatabase,
  fenced: Fenced | bigint,
  update: FencedUpdate,
): Promise<FencedUpdateResult> {
  const checked = checkedUpdate(update);
  checkScalars([...checked.set, ...checked.where]);
  const updated = await changeRows(
    db,
    fenced,
    update,
    checked,
    async (session, count, { fence }) => {
      if (count > 0) await updateRows(session, checked, fence);
      // The result is the number of locked rows. The count of the UPDATE depends on
      // CLIENT_FOUND_ROWS: without this flag, rows that already had these values are not counted.
      return count;
    },
  );
  return { updated };
}

/**
 * Deletes a row that carries its own fence, under the rule of `fencedUpdate`. The fence is deleted
 * with the row, so a stale `fencedUpsert` could insert the row again. If a deleted row may be
 * inserted again later, use `guardFence`, or mark the row as deleted by `fencedUpdate`.
 */
export async function fencedDelete(
  db: MysqlDatabase,
  fenced: Fenced | bigint,
  row: FencedRowDelete,
): Promise<FencedDeleteResult> {
  const checked = checkedRow(row, "maxFenceAhead");
  checkScalars(checked.where);
  const deleted = await changeRows(db, fenced, row, checked, async (session, count, { fence }) => {
    if (count > 0) await deleteRows(session, checked, fence);
    return count;
  });
  return { deleted };
}

/**
 * Inserts a row with its fence, or updates it under the rule of `fencedUpdate`. Rejects with
 * StoreError if a unique index on other columns than `key` prevents the insert.
 */
export async function fencedUpsert(
  db: MysqlDatabase,
  fenced: Fenced | bigint,
  upsert: FencedUpsert,
): Promise<FencedUpsertResult> {
  const checked = checkedUpsert(upsert);
  checkScalars([...checked.set, ...checked.insert]);
  const inserted = await changeRows(
    db,
    fenced,
    upsert,
    checked,
    async (session, count, subject) => {
      if (count === 0) {
        try {
          await insertRow(session, checked, subject.fence);
          return true;
        } catch (error) {
          if (errorNumber(error) !== 1062) throw error;
          await assertSameRow(session, checked, subject, error);
        }
      }
      await updateRows(session, checked, subject.fence);
      return false;
    },
  );
  return { inserted };
}

/**
 * Replaces the fence of each matching row by the fence of `fenced`, if the row's fence is greater
 * than `maxFenceAhead` allows. Pass a lease that was acquired after the accident.
 */
export async function lowerFence(
  db: MysqlDatabase,
  fenced: Fenced | bigint,
  row: LoweredRow,
): Promise<LowerFenceResult> {
  const checked = checkedRow(row, "maxFenceAhead");
  checkScalars(checked.where);
  const resource = subjectOf(fenced, row.resource, checked.table.join("."));
  const clock = (): Promise<number> => mysqlMs(anySession(db));
  const { fence, limit } = await loweringOf(fenced, resource, row.maxFenceAhead, clock);
  return await inTransaction(db, async (session) => {
    const { fences } = await lockedFences(session, checked);
    const lowered = fences.filter((each) => each > limit).length;
    if (lowered > 0) await lowerRows(session, checked, fence, limit);
    return { lowered };
  });
}

/** Lease and fence of a write, and the resource to name in an error. */
interface Subject {
  readonly fenced: Fenced | bigint;
  readonly fence: bigint;
  readonly resource: string;
}

/** Locks the rows, checks their fences, and runs `change` with the number of rows. */
async function changeRows<Result>(
  db: MysqlDatabase,
  fenced: Fenced | bigint,
  options: Pick<FencedUpdate, "resource" | "maxFenceAhead">,
  checked: CheckedRow,
  change: (session: Session, count: number, subject: Subject) => Promise<Result>,
): Promise<Result> {
  const resource = subjectOf(fenced, options.resource, checked.table.join("."));
  const clock = (): Promise<number> => mysqlMs(anySession(db));
  const fence = await plausibleFence(fenced, resource, options.maxFenceAhead, clock);
  return await inTransaction(db, async (session) => {
    const { fences, greatest } = await lockedFences(session, checked);
    await checkTable(session, checked.table, checked.column);
    if (greatest > fence) {
      throw rejection(fenced, { resource, fence, seen: greatest, guard: "mysql" });
    }
    return await change(session, fences.length, { fenced, fence, resource });
  });
}

/**
 * Called after a duplicate key. Throws unless another session has inserted the row of `key`, with a
 * fence that is not greater.
 */
async function assertSameRow(
  session: Session,
  checked: CheckedRow,
  { fenced, fence, resource }: Subject,
  cause: unknown,
): Promise<void> {
  const { fences, greatest } = await lockedFences(session, checked);
  if (fences.length === 0) {
    const columns = checked.where.map(([column]) => column).join(", ");
    throw new StoreError(
      `no row of "${checked.table.join(".")}" has this key (${columns}), and a unique index on ` +
        "other columns prevents that it is inserted",
      { cause },
    );
  }
  if (greatest > fence) {
    throw rejection(fenced, { resource, fence, seen: greatest, guard: "mysql" });
  }
}
