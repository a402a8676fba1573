import type { Clock, Instant, Runtime, SteadyClock, SteadyRuntime } from "./ports.ts";

/**
 * The problem: the monotonic clock stands still while the machine sleeps, and the wall clock can be
 * set back. Compared with a wall deadline of before such a step, a machine that sleeps after it
 * would seem to have plenty of time left.
 *
 * The idea: only what the wall clock *gains* on the monotonic one from one look to the next counts,
 * and it counts for good. What it loses counts as nothing, and hides nothing that comes later.
 *
 * The limit: a step back and a sleep between the same two looks cannot be told from no sleep. While
 * anything is scheduled, the scheduler looks at least once a second.
 */

/** The wall clock counts whole milliseconds: less than this is no movement. */
const noiseMs = 2;

class FollowedClock implements SteadyClock {
  readonly timerSlackMs: number;
  readonly #clock: Clock;
  /** The wall clock less the monotonic one: the greatest since it was last set back. */
  #offsetMs: number;
  /** All that it has gained so far. */
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
      // A process that is stopped between the two looks has not slept: look again.
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

/** One for each clock: managers that share a clock see the same steps, and agree. */
const followed = new WeakMap<Clock, SteadyClock>();

export function steadyClock(clock: Clock): SteadyClock {
  if (clock instanceof FollowedClock) return clock;
  const known = followed.get(clock);
  if (known !== undefined) return known;
  const made = new FollowedClock(clock);
  followed.set(clock, made);
  return made;
}

/** The same runtime, with a clock that follows both of its clocks. */
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
