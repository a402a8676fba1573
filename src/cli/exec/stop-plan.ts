/**
 * Times at which a command is stopped if its lease runs out.
 *
 * The command and its child processes get SIGTERM while the remaining validity still covers the
 * grace (the time from SIGTERM to SIGKILL), and SIGKILL before the validity ends. `exec`, which
 * renews the lease, and the watchdog both use these functions.
 */

export interface StopTerms {
  readonly ttlMs: number;
  readonly graceMs: number;
}

/** Returns the time that signals and timers may need on a busy machine. */
export function marginMs({ ttlMs }: StopTerms): number {
  return Math.min(500, Math.max(20, ttlMs * 0.05));
}

/**
 * Returns the remaining validity at which SIGTERM is sent. If renewals succeed, more validity
 * remains at any time: a lease is renewed after a third of its TTL, and the grace is limited to
 * another third.
 */
export function stopLeftMs(terms: StopTerms): number {
  return Math.min(terms.graceMs, terms.ttlMs / 3) + marginMs(terms);
}

/**
 * Returns the time from SIGTERM to SIGKILL: the grace, but not longer than the remaining validity.
 * If the lease is lost, so that no validity remains, returns the whole grace.
 */
export function killAfterMs(terms: StopTerms, leftMs: number): number {
  const insideMs = leftMs - marginMs(terms) / 2;
  return leftMs <= 0 ? terms.graceMs : Math.max(0, Math.min(terms.graceMs, insideMs));
}
