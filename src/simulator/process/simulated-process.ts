import type { Clock, Diagnostics, Random, Runtime } from "../../core/ports.ts";
import { DriftingClock } from "../drifting-clock.ts";
import { epochMs } from "../node/server.ts";
import type { Scene } from "../scene.ts";
import type { SeededRandom } from "../seeded-random.ts";

export interface ProcessPlan {
  /** Rate of its clocks relative to the world's time. */
  readonly rate: number;
  /** Offset of its wall clock at the start. */
  readonly wallSkewMs: number;
}

type Source = "timer" | "network";

/** One client process with its own clocks, timers and randomness. It can pause and crash. */
export class SimulatedProcess {
  readonly name: string;
  readonly runtime: Runtime;
  readonly random: SeededRandom;
  readonly monotonic: DriftingClock;
  readonly wall: DriftingClock;
  /** Errors that listeners threw or that escaped from the code under test. */
  readonly failures: unknown[] = [];
  readonly #scene: Scene;
  #deferred: { readonly source: Source; readonly run: () => void }[] = [];
  #pauses = 0;
  #suspends = 0;
  #pausedSinceMs = 0;
  #pausedMs = 0;
  #resumedMs = -Infinity;
  #crashed = false;
  /** World's time when a timer was last cancelled that should already have fired. */
  #overdueMs = -1;
  #putOffs = 0;
  /** World's time when its code last read the wall clock. */
  #lookedMs = -1;
  /** Wall clock minus monotonic clock at that reading. */
  #offsetMs: number;
  #gainedMs = 0;

  constructor(scene: Scene, name: string, plan: ProcessPlan) {
    this.#scene = scene;
    this.name = name;
    this.random = scene.random.fork(name);
    this.monotonic = new DriftingClock(this.random.between(1_000, 100_000), plan.rate);
    this.wall = new DriftingClock(epochMs + plan.wallSkewMs, plan.rate);
    this.#offsetMs = this.#offsetNowMs();
    this.runtime = { clock: this.#clock(), random: this.#chance(), diagnostics: this.#quiet() };
  }

  get hasCrashed(): boolean {
    return this.#crashed;
  }

  get isPaused(): boolean {
    return this.#pauses > 0;
  }

  monotonicMs(): number {
    return this.monotonic.at(this.#scene.nowMs);
  }

  /** Returns whole milliseconds, like `Date.now()`. */
  wallMs(): number {
    return Math.floor(this.wall.at(this.#scene.nowMs));
  }

  /** Returns monotonic time plus what the wall clock was seen to gain on it between readings. */
  steadyMs(): number {
    return this.monotonicMs() + this.#gainedMs;
  }

  /** True if its code has read the wall clock since then. */
  hasLookedSince(ms: number): boolean {
    return this.#lookedMs > ms;
  }

  /** Returns the total time it was paused, in the world's time. */
  pausedMs(): number {
    return this.#pausedMs + (this.isPaused ? this.#scene.nowMs - this.#pausedSinceMs : 0);
  }

  /** Returns the world's time since the end of its last pause. */
  runsForMs(): number {
    return this.#scene.nowMs - this.#resumedMs;
  }

  /** Runs code of this process now, after a pause ends, or never if the process crashed. */
  enter(source: Source, run: () => void): void {
    if (this.#crashed) return;
    if (this.isPaused) {
      this.#deferred.push({ source, run });
      return;
    }
    this.#scene.enter();
    run();
  }

  /** Pauses the process as SIGSTOP does. With `suspended`, its monotonic clock stops too. */
  pause(suspended: boolean): void {
    if (!this.isPaused) this.#pausedSinceMs = this.#scene.nowMs;
    this.#pauses += 1;
    if (!suspended) return;
    this.#suspends += 1;
    this.monotonic.hold(this.#scene.nowMs);
  }

  /** Ends one pause. Returns true if the process runs again (the last overlapping pause ended). */
  resume(suspended: boolean): boolean {
    if (suspended) {
      this.#suspends -= 1;
      if (this.#suspends === 0) this.monotonic.letGo(this.#scene.nowMs);
    }
    this.#pauses -= 1;
    if (this.isPaused) return false;
    this.#pausedMs += this.#scene.nowMs - this.#pausedSinceMs;
    this.#resumedMs = this.#scene.nowMs;
    const timersFirst = this.random.chance(0.5);
    const timers = this.#deferred.filter(({ source }) => source === "timer");
    const others = this.#deferred.filter(({ source }) => source === "network");
    this.#deferred = [];
    const inOrder = timersFirst ? [...timers, ...others] : [...others, ...timers];
    for (const { source, run } of inOrder) this.#scene.after(0, () => this.enter(source, run));
    return true;
  }

  crash(): void {
    this.#crashed = true;
    this.#deferred = [];
  }

  /** Waits by a timer of this process. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.runtime.clock.setTimer(ms, true, resolve);
    });
  }

  #clock(): Clock {
    return {
      monotonicMs: () => this.monotonicMs(),
      wallMs: () => {
        this.#look();
        return this.wallMs();
      },
      setTimer: (delayMs, _keepAlive, callback) => {
        // Node's timers count whole milliseconds from the start of the loop turn: sometimes early.
        const earliestMs = Math.max(0, Math.trunc(delayMs) - 1);
        const dueMs = this.monotonicMs() + delayMs;
        const timer = { done: false };
        this.#watchSet(delayMs);
        const firesMs = this.random.chance(0.1)
          ? this.random.between(earliestMs, delayMs)
          : delayMs + this.random.fraction();
        this.#fireIn(firesMs, this.monotonicMs() + earliestMs, timer, callback);
        return () => {
          if (!timer.done && dueMs < this.monotonicMs()) this.#overdueMs = this.#scene.nowMs;
          timer.done = true;
        };
      },
      timerSlackMs: 1,
    };
  }

  #offsetNowMs(): number {
    const { nowMs } = this.#scene;
    return this.wall.at(nowMs) - this.monotonic.at(nowMs);
  }

  #look(): void {
    this.#lookedMs = this.#scene.nowMs;
    const offsetMs = this.#offsetNowMs();
    // Tolerance for rounding errors of fractional milliseconds.
    if (Math.abs(offsetMs - this.#offsetMs) < 0.5) return;
    this.#gainedMs += Math.max(0, offsetMs - this.#offsetMs);
    this.#offsetMs = offsetMs;
  }

  /**
   * Records a failure if an overdue timer was cancelled and set anew twice in a row. In a busy
   * process such a timer could be postponed for ever. A single case may be a coincidence: the timer
   * was no longer needed and another one became due at the same moment.
   */
  #watchSet(delayMs: number): void {
    if (delayMs > 0 || this.#overdueMs !== this.#scene.nowMs) return;
    // Only the first timer set at that moment can be the replacement.
    this.#overdueMs = -1;
    this.#putOffs += 1;
    if (this.#putOffs < 2) return;
    this.failures.push(new Error("a timer that was overdue was set anew, twice"));
  }

  #fireIn(ms: number, earliestMs: number, timer: { done: boolean }, callback: () => void): void {
    this.#scene.after(ms / this.monotonic.rate, () => {
      if (timer.done) return;
      this.enter("timer", () => {
        if (timer.done) return;
        // The clock was held meanwhile, so the timer is not due yet.
        const earlyMs = earliestMs - this.monotonicMs();
        if (earlyMs > 0.001) {
          this.#fireIn(earlyMs + 1, earliestMs, timer, callback);
          return;
        }
        timer.done = true;
        this.#putOffs = 0;
        callback();
      });
    });
  }

  #chance(): Random {
    const random = this.random.fork("library");
    return { fraction: () => random.fraction(), uniqueBase: () => random.hex(22) };
  }

  #quiet(): Diagnostics {
    return {
      hasSubscribers: () => false,
      publish: () => undefined,
      listenerFailed: (error) => {
        this.failures.push(error);
      },
    };
  }
}
