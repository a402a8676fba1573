import type { Clock } from "../../core/ports.ts";

/**
 * The one place where the store needs a clock of the whole machine: the expiry of an entry is
 * written by one process and judged by others. That clock is CLOCK_MONOTONIC (on macOS and Windows
 * its like), which all processes share, nobody can set, and `process.hrtime` reads. A manager's own
 * clock counts from another beginning, so its distance to the machine's is measured once, and all
 * arithmetic is done on the injected clock.
 *
 * It stands still while the machine is suspended, for holders and rivals alike.
 */
export class MachineClock {
  readonly #clock: Clock;
  readonly #offsetMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#offsetMs = offsetOf(clock);
  }

  nowMs(): number {
    return this.#clock.monotonicMs() + this.#offsetMs;
  }
}

/** How exactly two clocks are compared: more than what is taken off each TTL would be wrong. */
const precisionMs = 0.1;
const readingsMax = 1_000;

/** Managers of one clock must agree to the last bit, or a manual clock would not be one. */
const offsets = new WeakMap<Clock, number>();

function offsetOf(clock: Clock): number {
  let offsetMs = offsets.get(clock);
  if (offsetMs === undefined) {
    offsetMs = measure(clock);
    offsets.set(clock, offsetMs);
  }
  return offsetMs;
}

/** The process can be put aside between two readings, so the closest pair counts. */
function measure(clock: Clock): number {
  let offsetMs = 0;
  let closestMs = Infinity;
  for (let reading = 0; reading < readingsMax && closestMs > precisionMs; reading += 1) {
    const beforeMs = machineMs();
    const betweenMs = clock.monotonicMs();
    const gapMs = machineMs() - beforeMs;
    if (gapMs >= closestMs) continue;
    closestMs = gapMs;
    offsetMs = beforeMs + gapMs / 2 - betweenMs;
  }
  return offsetMs;
}

/** Taken when this module is loaded: fake timers of a test, installed later, replace it. */
const machineNs = process.hrtime.bigint.bind(process.hrtime);

function machineMs(): number {
  return Number(machineNs()) / 1e6;
}
