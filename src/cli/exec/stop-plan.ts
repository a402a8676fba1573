/**
 * When to stop a command whose lease runs out.
 *
 * The command and its child processes get SIGTERM while the validity left still covers the grace,
 * and SIGKILL before the validity ends. The process that renews and the watchdog both use this
 * arithmetic.
 */

export interface StopTerms {
  readonly ttlMs: number;
  readonly graceMs: number;
}

/** Returns the time allowed for signals and timers on a busy machine. */
export function marginMs({ ttlMs }: StopTerms): number {
  return Math.min(500, Math.max(20, ttlMs * 0.05));
}

/**
 * Returns the time left at which SIGTERM is sent. A healthy lease never gets there: renewals come
 * after a third of the TTL, so the grace is limited to another third.
 */
export function stopLeftMs(terms: StopTerms): number {
  return Math.min(terms.graceMs, terms.ttlMs / 3) + marginMs(terms);
}

/**
 * Returns the time from SIGTERM to SIGKILL: the grace, but within the validity left. If nothing is
 * left because the lease was lost, the whole grace.
 */
export function killAfterMs(terms: StopTerms, leftMs: number): number {
  const insideMs = leftMs - marginMs(terms) / 2;
  return leftMs <= 0 ? terms.graceMs : Math.max(0, Math.min(terms.graceMs, insideMs));
}
