import type { Clock, Instant, Runtime, SteadyClock, SteadyRuntime } from "../ports.ts";

/**
 * Least gain of the wall clock on the monotonic one that is a step: a suspend, or the clock was
 * set. Smaller gains come from slewing.
 */
export const clockStepMs = 20;

/** Returns what is left now of `validityMs` since `started`. */
export function leftMs(clock: SteadyClock, started: Instant, validityMs: number): number {
  return leftAt(clock.now(), started, validityMs);
}

/** Returns what is left of `validityMs` since `started`, by the time of which less is left. */
export function leftAt(moment: Instant, started: Instant, validityMs: number): number {
  return Math.min(
    started.monotonicMs + validityMs - moment.monotonicMs,
    started.steadyMs + validityMs - moment.steadyMs,
  );
}

/**
 * Problem: the monotonic clock stands still while the machine sleeps, and the wall clock can be set
 * back. If both happen, neither clock shows that a lease is over: the monotonic one has lost the
 * sleep, and the wall clock has it, but minus the step back.
 *
 * Idea: one time made of both, the monotonic time plus all that the wall clock *gains* on it from
 * one reading to the next. A gain (a sleep, or a step forward) counts for good. A loss counts as
 * nothing, and the next gain is measured from there.
 *
 * Limits: a sleep and a step back between the same two readings cancel each other out. The
 * scheduler reads the clocks at least once a second while anything is scheduled. A wall clock that
 * is set forward ends leases early, which is safe.
 */

/** Least movement of the wall clock: it counts whole milliseconds, so less may be rounding. */
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
      // The process may have been stopped between the two readings, which is no gain: read again.
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

/** One steady clock per clock, so that managers that share a clock see the same steps. */
const followed = new WeakMap<Clock, SteadyClock>();

export function steadyClock(clock: Clock): SteadyClock {
  if (clock instanceof FollowedClock) return clock;
  const known = followed.get(clock);
  if (known !== undefined) return known;
  const made = new FollowedClock(clock);
  followed.set(clock, made);
  return made;
}

/** Returns the same runtime with a steady clock. */
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
