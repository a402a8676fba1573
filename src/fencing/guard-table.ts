import type { TableHint } from "./missing-table.ts";
import type { FenceLimitOptions } from "./plausible-fence.ts";
import type { TableName } from "./sql-row.ts";

export const guardTableDefault = "holdfast_fence";

export interface GuardTableOptions {
  /** @default "holdfast_fence" */
  readonly table?: TableName;
}

export interface GuardFenceOptions extends GuardTableOptions, FenceLimitOptions {
  /** Resources whose guard rows to check. @default every resource of the lease */
  readonly resource?: string | readonly string[];
}

/** What to say if the guard table does not exist. */
export function guardTableHint(parts: readonly string[]): TableHint {
  return {
    table: parts.join("."),
    tableDefault: guardTableDefault,
    sqlFunction: "guardTableSql",
    what: "guard table",
  };
}
