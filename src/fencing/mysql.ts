/** Guards for MySQL and MariaDB: a fence column on the row, or a guard table beside it. */

export type { Fenced } from "./guard.ts";
export type { Admission, FenceStore } from "./fence-store.ts";
export type { MysqlConnection, MysqlDatabase, MysqlPool, MysqlQuery } from "./mysql-session.ts";
export type { FencedRow, FencedUpdate, FencedUpdateResult, TableName } from "./sql-row.ts";
export { assertFenced, fencedUpdate, type MysqlOutcome } from "./mysql-row.ts";
export { guardFence, mysqlFences } from "./mysql-guard-table.ts";
export type { GuardFenceOptions, GuardTableOptions } from "./guard-table.ts";
export { fenceColumnSql, guardTableSql } from "./mysql-migrations.ts";
