import { quoted } from "./quoted.ts";

/** Known details of the holder of a resource. A foreign client leaves no label and no fence. */
export interface Holder {
  /**
   * Owner in the store. Only the start of a foreign value; an inspection adds its length and SHA-1.
   */
  readonly owner: string;
  /** True if Holdfast did not write the value: it may be another client's lock, or no lock. */
  readonly foreign?: true;
  /**
   * True if the manager that reports this holder holds the resource itself, under another lease.
   */
  readonly self?: true;
  /**
   * Start of the lease if `self` is true: milliseconds since 1970, by the wall clock of this
   * machine. Left out for a holder elsewhere.
   */
  readonly sinceMs?: number;
  /** True if the lock has no expiry: it does not end by itself. */
  readonly neverExpires?: true;
  readonly label?: string;
  readonly fence?: bigint;
  readonly remainingMs?: number;
}

export const noNesting = "leases do not nest";

/** Returns the holder as text that follows "by" in a sentence. */
export function nameOf(holder: Holder | undefined): string {
  if (holder?.foreign === true) return `another kind of client (value ${quoted(holder.owner)})`;
  const label = holder?.label === undefined ? undefined : quoted(holder.label);
  if (holder?.self !== true) return label ?? "others";
  const since = holder.sinceMs === undefined ? "" : ` since ${timeOf(holder.sinceMs)}`;
  return `this process${since}${label === undefined ? "" : ` (label ${label})`}`;
}

/** Returns the time of day of a moment in milliseconds since 1970. */
export function timeOf(ms: number): string {
  const seconds = Math.floor(ms / 1_000) % 86_400;
  const parts = [seconds / 3_600, (seconds / 60) % 60, seconds % 60];
  return `${parts.map((part) => String(Math.floor(part)).padStart(2, "0")).join(":")} UTC`;
}
