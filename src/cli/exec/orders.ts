import type { StopTerms } from "./stop-plan.ts";
import type { Target } from "./target.ts";

/** What the watchdog is told: all it needs, each time anew. One line of JSON. */
export interface Order {
  readonly target: Target;
  readonly terms: StopTerms;
  /** The end of validity on the machine's monotonic clock, which both processes read. */
  readonly untilNs: string;
  readonly untilWallMs: number;
  /** Grace if `exec` itself dies: none where that frees the lock at once. */
  readonly orphanGraceMs: number;
}

export function writeOrder(order: Order): string {
  return `${JSON.stringify(order)}\n`;
}

export function readOrder(line: string): Order | undefined {
  try {
    return JSON.parse(line) as Order;
  } catch {
    // Half a line: the writer died in the middle of it. What was told before still holds.
    return undefined;
  }
}
