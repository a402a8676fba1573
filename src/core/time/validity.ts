import type { Instant, SteadyClock } from "../ports.ts";

/**
 * Least gain of the wall clock on the monotonic one that is a step: a suspend, or the clock was
 * set. Smaller gains come from slewing.
 */
export const clockStepMs = 20;

export function now(clock: SteadyClock): Instant {
  return clock.now();
}

/** Returns what is left of `validityMs` since `started`, by the time of which less is left. */
export function leftMs(clock: SteadyClock, started: Instant, validityMs: number): number {
  return leftAt(clock.now(), started, validityMs);
}

/** Like `leftMs`, at a moment that was read already. */
export function leftAt(moment: Instant, started: Instant, validityMs: number): number {
  return Math.min(
    started.monotonicMs + validityMs - moment.monotonicMs,
    started.steadyMs + validityMs - moment.steadyMs,
  );
}
