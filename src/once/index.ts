/** `holdfast/once`: work that is done once for each key, and whose result later calls receive. */

export { once, type CrashPolicy, type OnceOptions } from "./once.ts";
export { KeyReusedError, OutcomeUnknownError } from "./once-errors.ts";
export type { Memo, MemoRecord, MemoState } from "./memo.ts";
export { memoryMemo, type MemoryMemoOptions } from "./memory-memo.ts";
export { mysqlMemo, mysqlMemoSql } from "./mysql-memo.ts";
export { postgresMemo, postgresMemoSql, type MemoTableOptions } from "./postgres-memo.ts";
export { redisMemo, type RedisMemoOptions } from "./redis-memo.ts";
