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
