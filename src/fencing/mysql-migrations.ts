import { guardTableDefault } from "./mysql-guard-table.ts";
import { quoted, quotedTable } from "./mysql-session.ts";
import { checkedName, tableParts, type TableName } from "./sql-row.ts";

/**
 * The column that `fencedUpdate` compares, for an InnoDB table whose rows carry their own fence.
 * Run it once: MySQL has no IF NOT EXISTS here.
 */
export function fenceColumnSql(table: TableName, column = "fence"): string {
  const name = quoted(checkedName("column", column));
  return (
    `ALTER TABLE ${quotedTable(tableParts(table))} ADD COLUMN ` +
    `${name} BIGINT NOT NULL DEFAULT 0 CHECK (${name} >= 0)`
  );
}

/** The table that `guardFence` uses. */
export function guardTableSql(table: TableName = guardTableDefault): string {
  // Bytes, not text: collations ignore case, accents and trailing spaces, and would make two
  // resources one. InnoDB, because the guard is its row lock.
  return (
    `CREATE TABLE IF NOT EXISTS ${quotedTable(tableParts(table))} ` +
    "(`resource` VARBINARY(512) NOT NULL PRIMARY KEY, " +
    "`fence` BIGINT NOT NULL DEFAULT 0 CHECK (`fence` >= 0)) ENGINE=InnoDB"
  );
}
