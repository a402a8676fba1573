/** Guards for MySQL and MariaDB: a fence column on the row, or a guard table beside it. */

export type { Fenced } from "./guard.ts";
export type { Admission, FenceStore } from "./fence-store.ts";
export type { LowerableFenceStore, LowerFenceOptions, LowerFenceResult } from "./lower-fence.ts";
export type { FenceLimitOptions, MaxFenceAhead } from "./plausible-fence.ts";
export type { MysqlConnection, MysqlDatabase, MysqlPool, MysqlQuery } from "./mysql-session.ts";
export { expression, type SqlExpression } from "./sql-expression.ts";
export type {
  FencedDeleteResult,
  FencedRow,
  FencedRowDelete,
  FencedUpdate,
  FencedUpdateResult,
  FencedUpsert,
  FencedUpsertResult,
  LoweredRow,
  TableName,
} from "./sql-row.ts";
export { assertFenced, type MysqlOutcome } from "./mysql-assert.ts";
export { fencedDelete, fencedUpdate, fencedUpsert, lowerFence } from "./mysql-row.ts";
export type { WithGuardOptions } from "./guarded-transaction.ts";
export { withGuard, type MysqlTransaction } from "./mysql-transaction.ts";
export { guardFence, mysqlFences } from "./mysql-guard-table.ts";
export type { GuardFenceOptions, GuardTableOptions } from "./guard-table.ts";
export { fenceColumnSql, guardTableSql } from "./mysql-migrations.ts";
