import type { StopTerms } from "./stop-plan.ts";
import type { Target } from "./target.ts";

/** Message to the watchdog: one line of JSON that replaces the previous one. */
export interface Order {
  readonly target: Target;
  readonly terms: StopTerms;
  /** End of validity on the machine's monotonic clock, which both processes read. */
  readonly untilNs: string;
  readonly untilWallMs: number;
  /** Grace if `exec` itself dies; 0 if the store then frees the lock at once. */
  readonly orphanGraceMs: number;
}

export function writeOrder(order: Order): string {
  return `${JSON.stringify(order)}\n`;
}

export function readOrder(line: string): Order | undefined {
  try {
    return JSON.parse(line) as Order;
  } catch {
    // Incomplete line: the writer died while writing. The previous order stays in force.
    return undefined;
  }
}
