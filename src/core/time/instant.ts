import type { Clock, Instant, Runtime, SteadyClock, SteadyRuntime } from "../ports.ts";

/**
 * Least gain of the wall clock on the monotonic clock that counts as a step: the machine was
 * suspended or the clock was set. Smaller gains come from slewing.
 */
export const clockStepMs = 20;

/** Returns how much of `validityMs`, counted from `started`, is left now. */
export function leftMs(clock: SteadyClock, started: Instant, validityMs: number): number {
  return leftAt(clock.now(), started, validityMs);
}

/**
 * Returns how much of `validityMs`, counted from `started`, is left at `moment`. The monotonic and
 * the steady time may differ: the smaller result counts.
 */
export function leftAt(moment: Instant, started: Instant, validityMs: number): number {
  return Math.min(
    started.monotonicMs + validityMs - moment.monotonicMs,
    started.steadyMs + validityMs - moment.steadyMs,
  );
}

/**
 * Problem: the monotonic clock stands still while the machine sleeps, and the wall clock can be set
 * back. If both happen, neither clock shows that a lease is over: the monotonic clock misses the
 * sleep, and the step back hides the sleep in the wall clock.
 *
 * Idea: one steady time made of both clocks. It is the monotonic time plus all gains of the wall
 * clock on the monotonic clock from one reading to the next. A gain (a sleep, or a step forward)
 * counts for good. A loss (a step back) does not count, and later gains are measured from the new
 * offset.
 *
 * Limits: a sleep and a step back between the same two readings cancel each other out. The
 * scheduler reads the clocks at least once a second while anything is scheduled. A wall clock that
 * is set forward ends leases early, which is safe.
 */

/**
 * Least change of the difference between the clocks that counts. The wall clock counts whole
 * milliseconds, so a smaller change may be rounding.
 */
const noiseMs = 2;

class FollowedClock implements SteadyClock {
  readonly timerSlackMs: number;
  readonly #clock: Clock;
  /** Wall clock minus monotonic clock: the greatest value since the last step back. */
  #offsetMs: number;
  /** Sum of all gains of the wall clock so far. */
  #gainedMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.timerSlackMs = clock.timerSlackMs;
    this.#offsetMs = clock.wallMs() - clock.monotonicMs();
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs();
  }

  wallMs(): number {
    return this.#clock.wallMs();
  }

  setTimer(...timer: Parameters<Clock["setTimer"]>): ReturnType<Clock["setTimer"]> {
    return this.#clock.setTimer(...timer);
  }

  now(): Instant {
    const clock = this.#clock;
    let monotonicMs = clock.monotonicMs();
    let offsetMs = clock.wallMs() - monotonicMs;
    if (offsetMs >= this.#offsetMs + noiseMs) {
      // The process may have been stopped between the readings of the two clocks, which looks like
      // a gain. A second reading excludes that.
      monotonicMs = clock.monotonicMs();
      offsetMs = Math.min(offsetMs, clock.wallMs() - monotonicMs);
    }
    if (offsetMs > this.#offsetMs) {
      this.#gainedMs += offsetMs - this.#offsetMs;
      this.#offsetMs = offsetMs;
    } else if (offsetMs < this.#offsetMs - noiseMs) {
      this.#offsetMs = offsetMs;
    }
    return { monotonicMs, steadyMs: monotonicMs + this.#gainedMs };
  }
}

/** The steady clock of each clock. Managers that share a clock also share its steady clock. */
const followed = new WeakMap<Clock, SteadyClock>();

export function steadyClock(clock: Clock): SteadyClock {
  if (clock instanceof FollowedClock) return clock;
  const known = followed.get(clock);
  if (known !== undefined) return known;
  const made = new FollowedClock(clock);
  followed.set(clock, made);
  return made;
}

/** Returns the parts of `runtime`, with a steady clock instead of its clock. */
export function steadyRuntime(runtime: Runtime): SteadyRuntime {
  const { clock, random, diagnostics, stalls, asyncContext } = runtime;
  return {
    clock: steadyClock(clock),
    random,
    diagnostics,
    ...(stalls === undefined ? {} : { stalls }),
    ...(asyncContext === undefined ? {} : { asyncContext }),
  };
}
