import type { Clock } from "../../core/ports.ts";

/**
 * Clock that all processes of the machine share.
 *
 * Problem: one process writes the expiry of an entry, and other processes read it.
 * Idea: CLOCK_MONOTONIC (on macOS and Windows its equivalent) is the same for all processes and
 * cannot be set. `process.hrtime` reads it. A manager's own clock starts at another time, so the
 * offset is measured once and added to each reading of the manager's clock.
 * Limits: the clock stands still while the machine is suspended, for holders and for waiting
 * processes alike.
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

/**
 * Limit for the error of the offset. It is far below the allowance that is subtracted from each
 * TTL.
 */
const precisionMs = 0.1;
const readingsMax = 1_000;

/**
 * Measured offset of each clock. Managers that share a clock must read exactly the same time, so
 * they share the offset.
 */
const offsets = new WeakMap<Clock, number>();

function offsetOf(clock: Clock): number {
  let offsetMs = offsets.get(clock);
  if (offsetMs === undefined) {
    offsetMs = measure(clock);
    offsets.set(clock, offsetMs);
  }
  return offsetMs;
}

/**
 * Measures the offset: each reading of `clock` lies between two readings of the machine's clock.
 * Uses the closest pair of these, because the process may be interrupted between the two.
 */
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

/**
 * `process.hrtime.bigint`, stored when this module is loaded, because fake timers of a test replace
 * it later.
 */
const machineNs = process.hrtime.bigint.bind(process.hrtime);

function machineMs(): number {
  return Number(machineNs()) / 1e6;
}
