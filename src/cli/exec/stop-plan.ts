/**
 * When to stop a command whose lease runs out. The command and what it started are told to end
 * (SIGTERM) while there is still validity left for the grace, and are killed (SIGKILL) before it is
 * over. The same arithmetic runs in the process that renews and in the watchdog beside it.
 */

export interface StopTerms {
  readonly ttlMs: number;
  readonly graceMs: number;
}

/** Signals and timers take a moment, on a busy machine a long one. */
export function marginMs({ ttlMs }: StopTerms): number {
  return Math.min(500, Math.max(20, ttlMs * 0.05));
}

/**
 * With so little left the command is told to end. A lease that renews well never has: renewals come
 * after a third of the TTL, so a longer grace than another third is cut.
 */
export function stopLeftMs(terms: StopTerms): number {
  return Math.min(terms.graceMs, terms.ttlMs / 3) + marginMs(terms);
}

/**
 * How long after SIGTERM comes SIGKILL: after the grace, but inside the validity that is left.
 * Where nothing is left, because the lease was taken, only the grace counts.
 */
export function killAfterMs(terms: StopTerms, leftMs: number): number {
  const insideMs = leftMs - marginMs(terms) / 2;
  return leftMs <= 0 ? terms.graceMs : Math.max(0, Math.min(terms.graceMs, insideMs));
}
