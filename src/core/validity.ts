import type { Instant, SteadyClock } from "./ports.ts";

/**
 * The wall clock gained this much on the monotonic one: a suspend, or it was set. Less is no step:
 * it is slewed all the time.
 */
export const clockStepMs = 20;

export function now(clock: SteadyClock): Instant {
  return clock.now();
}

/** What is left of `validityMs` counted from `started`, by whichever time says less. */
export function leftMs(clock: SteadyClock, started: Instant, validityMs: number): number {
  return leftAt(clock.now(), started, validityMs);
}

/** The same at a moment that was looked up already. */
export function leftAt(moment: Instant, started: Instant, validityMs: number): number {
  return Math.min(
    started.monotonicMs + validityMs - moment.monotonicMs,
    started.steadyMs + validityMs - moment.steadyMs,
  );
}
