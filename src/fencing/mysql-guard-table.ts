import { knownOptions } from "../core/options.ts";
import { admission } from "./fence-store.ts";
import { guardTableDefault, guardTableHint } from "./guard-table.ts";
import type { GuardFenceOptions, GuardTableOptions } from "./guard-table.ts";
import { guardKey, guardedResources, parseFence, rejection, type Fenced } from "./guard.ts";
import { lowerEach, type LowerableFenceStore } from "./lower-fence.ts";
import { onMysqlTable } from "./missing-table.ts";
import { plausibleFence } from "./plausible-fence.ts";
import { anySession, callersTransaction, mysqlMs, quotedTable } from "./mysql-session.ts";
import type { MysqlDatabase, Session } from "./mysql-session.ts";
import { checkTable } from "./mysql-table.ts";
import { tableParts } from "./sql-row.ts";

/**
 * Checks and stores the fence in the guard table, for rows that cannot carry a fence column. Call
 * it in an open transaction, before the other statements: the guard row stays locked until commit.
 * An earlier SELECT would fix a snapshot that is older than the lock.
 *
 * Rejects with FenceRejectedError if the fence is stale: roll the transaction back then. Rejects
 * with FenceAheadError if the fence is greater than `maxFenceAhead` allows, and with
 * InvalidOptionError outside a transaction. Deadlocks and lock timeouts reject with the server's
 * error.
 */
export async function guardFence(
  db: MysqlDatabase,
  fenced: Fenced | bigint,
  options: GuardFenceOptions = {},
): Promise<void> {
  knownOptions("options", options, ["table", "resource", "maxFenceAhead"]);
  const table = tableParts(options.table ?? guardTableDefault);
  const resources = guardedResources(fenced, options.resource);
  const clock = (): Promise<number> => mysqlMs(anySession(db));
  const fence = await plausibleFence(fenced, resources[0] ?? "", options.maxFenceAhead, clock);
  const session = await callersTransaction(db);
  for (const resource of resources) {
    const seen = await onMysqlTable(guardTableHint(table), () =>
      raise(session, table, resource, fence),
    );
    if (seen > fence) throw rejection(fenced, { resource, fence, seen, guard: "mysql" });
  }
}

/**
 * Returns a fence store that keeps the fences of the HTTP guard in the guard table. Pass a pool:
 * each statement commits at once. Calls reject with StoreError if the table does not exist.
 *
 * An admission needs two statements. If another client stores a greater fence between them, the
 * second statement reads that one, and the smaller fence is refused. So no fence is accepted after
 * a greater one.
 */
export function mysqlFences(
  db: MysqlDatabase,
  options: GuardTableOptions = {},
): LowerableFenceStore {
  knownOptions("options", options, ["table"]);
  const table = tableParts(options.table ?? guardTableDefault);
  const session = anySession(db);
  return {
    admit: async (resource, fence) => {
      const greatest = await onMysqlTable(guardTableHint(table), () =>
        raise(session, table, resource, fence),
      );
      return admission(fence, greatest);
    },
    lower: (fenced, lowerOptions = {}) =>
      lowerEach(
        fenced,
        lowerOptions,
        () => mysqlMs(session),
        (resource, { fence, limit }) =>
          onMysqlTable(guardTableHint(table), async () => {
            const where = "WHERE `resource` = ? AND `fence` > CAST(? AS SIGNED)";
            const params = [Buffer.from(guardKey(resource)), String(limit)];
            const name = quotedTable(table);
            const found = await session.select(`SELECT 1 AS found FROM ${name} ${where}`, params);
            const text = `UPDATE ${name} SET \`fence\` = CAST(? AS SIGNED) ${where}`;
            if (found.length > 0) await session.select(text, [String(fence), ...params]);
            return found.length > 0;
          }),
      ),
  };
}

/**
 * Replaces the stored fence by `fence` if the stored one is smaller. Returns the fence that is
 * stored then. The upsert works on the newest row and locks it. The locking read then returns that
 * row, where a plain SELECT could return an old snapshot.
 */
async function raise(
  session: Session,
  table: readonly string[],
  resource: string,
  fence: bigint,
): Promise<bigint> {
  const name = quotedTable(table);
  const key = Buffer.from(guardKey(resource));
  const value = String(fence);
  await session.select(
    `INSERT INTO ${name} (\`resource\`, \`fence\`) VALUES (?, CAST(? AS SIGNED)) ` +
      "ON DUPLICATE KEY UPDATE `fence` = GREATEST(`fence`, CAST(? AS SIGNED))",
    [key, value, value],
  );
  const [row] = await session.select(
    // The fence is read as text, because drivers by default read a BIGINT as a double.
    `SELECT CAST(\`fence\` AS CHAR) AS seen FROM ${name} WHERE \`resource\` = ? FOR UPDATE`,
    [key],
  );
  // Checks the table only now: a query before the locking statement would fix an older snapshot.
  await checkTable(session, table, "fence");
  return parseFence(row?.["seen"], table.join("."));
}
