import { StoreError } from "../core/errors.ts";
import { knownOptions } from "../core/options.ts";
import { onMysqlTable } from "../fencing/missing-table.ts";
import { guardKey, parseFence, rejection, subjectOf } from "../fencing/guard.ts";
import {
  anySession,
  inTransaction,
  mysqlMs,
  poolOf,
  quotedTable,
} from "../fencing/mysql-session.ts";
import type { MysqlPool, Row, Session } from "../fencing/mysql-session.ts";
import { checkTable } from "../fencing/mysql-table.ts";
import { plausibleFence } from "../fencing/plausible-fence.ts";
import { tableParts, type TableName } from "../fencing/sql-row.ts";
import { parseState, type Memo, type MemoRecord } from "./memo.ts";
import { memoTableDefault, type MemoTableOptions } from "./postgres-memo.ts";

/** Time of the server in ms since 1970. */
const nowSql = "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)";

/** Returns the SQL that creates the table of `mysqlMemo`. Run it once. */
export function mysqlMemoSql(table: TableName = memoTableDefault): string {
  // VARBINARY, because collations ignore case and trailing spaces and would merge two keys.
  return (
    `CREATE TABLE IF NOT EXISTS ${quotedTable(tableParts(table))} ` +
    "(`key` VARBINARY(512) NOT NULL PRIMARY KEY, `fence` BIGINT NOT NULL, " +
    "`state` VARCHAR(8) NOT NULL, `text` MEDIUMTEXT CHARACTER SET utf8mb4 NOT NULL, " +
    "`until_ms` BIGINT NOT NULL) ENGINE=InnoDB"
  );
}

/**
 * Returns a memo in a table of MySQL or MariaDB, over a pool of `mysql2`. A write is a transaction
 * of its own. Calls reject with StoreError if the table does not exist.
 *
 * Rows stay after their time, and keep their fences. Delete those with an old `until_ms` from time
 * to time.
 */
export function mysqlMemo(pool: MysqlPool, options: MemoTableOptions = {}): Memo {
  knownOptions("options", options, ["table"]);
  const parts = tableParts(options.table ?? memoTableDefault);
  const name = parts.join(".");
  const hint = { table: name, tableDefault: memoTableDefault, sqlFunction: "mysqlMemoSql" };
  poolOf(pool, "a mysql2 pool");
  const session = anySession(pool);
  const found = selection(quotedTable(parts));
  return {
    async read(key) {
      const text = `${found} WHERE \`key\` = ? AND \`until_ms\` > ${nowSql}`;
      const [row] = await onMysqlTable(hint, () => session.select(text, [keyOf(key)]));
      return row === undefined ? undefined : recordOf(row, name);
    },
    async write(lease, key, record, keepMs) {
      const resource = subjectOf(lease, undefined, key);
      const fence = await plausibleFence(lease, resource, undefined, () => mysqlMs(session));
      const { stored, seen } = await onMysqlTable(hint, () =>
        inTransaction(pool, (own) => replace(own, parts, key, { ...record, fence }, keepMs)),
      );
      if (stored) return undefined;
      if (seen.fence > fence) {
        throw rejection(lease, { resource, fence, seen: seen.fence, guard: "mysql" });
      }
      return seen;
    },
  };
}

/**
 * Replaces the stored record, unless a greater fence has written it or it is done. The insert locks
 * the row, and the locking read returns its newest version.
 */
async function replace(
  session: Session,
  parts: readonly string[],
  key: string,
  { fence, state, text }: MemoRecord,
  keepMs: number,
): Promise<{ readonly stored: boolean; readonly seen: MemoRecord }> {
  const table = quotedTable(parts);
  const name = parts.join(".");
  await session.select(
    `INSERT INTO ${table} (\`key\`, \`fence\`, \`state\`, \`text\`, \`until_ms\`) ` +
      "VALUES (?, 1, 'failed', '{}', 0) ON DUPLICATE KEY UPDATE `fence` = `fence`",
    [keyOf(key)],
  );
  const [row] = await session.select(`${selection(table)} WHERE \`key\` = ? FOR UPDATE`, [
    keyOf(key),
  ]);
  // Checked after the row is locked, because this may fix the snapshot of the transaction.
  await checkTable(session, parts, "fence");
  if (row === undefined) throw new StoreError(`the table "${name}" did not return its row`);
  const seen = recordOf(row, name);
  const isDone = seen.state === "done" && Number(row["live"]) === 1;
  if (seen.fence > fence || isDone) return { stored: false, seen };
  await session.select(
    `UPDATE ${table} SET \`fence\` = CAST(? AS SIGNED), \`state\` = ?, \`text\` = ?, ` +
      `\`until_ms\` = ${nowSql} + CAST(? AS SIGNED) WHERE \`key\` = ?`,
    [String(fence), state, text, String(keepMs), keyOf(key)],
  );
  return { stored: true, seen };
}

function selection(table: string): string {
  // The fence is read as text, because drivers by default read a BIGINT as a double.
  return (
    "SELECT CAST(`fence` AS CHAR) AS `fence`, `state`, `text`, " +
    `\`until_ms\` > ${nowSql} AS \`live\` FROM ${table}`
  );
}

function keyOf(key: string): Buffer {
  return Buffer.from(guardKey(key));
}

function recordOf({ fence, state, text }: Row, table: string): MemoRecord {
  return { fence: parseFence(fence, table), state: parseState(state, table), text: String(text) };
}
