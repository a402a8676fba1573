import type { Clock, Instant } from "./ports.ts";

/**
 * The wall clock moved this much against the monotonic one: a suspend, or somebody set it. Less is
 * no step: it counts whole milliseconds, and it is slewed all the time.
 */
export const clockStepMs = 20;

export function now(clock: Clock): Instant {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
}

/**
 * What is left of `validityMs` counted from `started`, by whichever clock says less: the monotonic
 * one stands still while a machine is suspended, the wall clock can be set back.
 */
export function leftMs(clock: Clock, started: Instant, validityMs: number): number {
  return Math.min(
    started.monotonicMs + validityMs - clock.monotonicMs(),
    started.wallMs + validityMs - clock.wallMs(),
  );
}

/** The same at a moment that was looked up already. */
export function leftAt(moment: Instant, started: Instant, validityMs: number): number {
  return Math.min(
    started.monotonicMs + validityMs - moment.monotonicMs,
    started.wallMs + validityMs - moment.wallMs,
  );
}
