import type { Clock } from "../../core/ports.ts";

/**
 * Clock that all processes of the machine share.
 *
 * Problem: the expiry of an entry is written by one process and read by others.
 * Idea: CLOCK_MONOTONIC (on macOS and Windows its equivalent) is the same for all processes, cannot
 * be set, and is what `process.hrtime` reads. A manager's own clock starts at another time, so the
 * offset is measured once and added to each reading of that clock.
 * Limits: it stands still while the machine is suspended, for holders and rivals alike.
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

/** Greatest error of the offset: far below the allowance that is subtracted from each TTL. */
const precisionMs = 0.1;
const readingsMax = 1_000;

/** One offset per clock: managers that share a clock must read exactly the same time. */
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
 * Returns the offset from the closest pair of readings: the process may be interrupted in between.
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

/** Stored when this module is loaded, because fake timers of a test replace it later. */
const machineNs = process.hrtime.bigint.bind(process.hrtime);

function machineMs(): number {
  return Number(machineNs()) / 1e6;
}
