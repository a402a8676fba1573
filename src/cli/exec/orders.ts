import type { StopTerms } from "./stop-plan.ts";
import type { Target } from "./target.ts";

/** Message to the watchdog: one line of JSON that replaces the previous message. */
export interface Order {
  readonly target: Target;
  readonly terms: StopTerms;
  /** End of validity on the machine's monotonic clock, which both processes read. */
  readonly untilNs: string;
  readonly untilWallMs: number;
  /**
   * Time from SIGTERM to SIGKILL if `exec` itself dies; 0 if the store then frees the lock at once.
   */
  readonly orphanGraceMs: number;
}

export function writeOrder(order: Order): string {
  return `${JSON.stringify(order)}\n`;
}

export function readOrder(line: string): Order | undefined {
  try {
    return JSON.parse(line) as Order;
  } catch {
    // The line is incomplete, because `exec` died while it wrote. The previous order stays in
    // force.
    return undefined;
  }
}
