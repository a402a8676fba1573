import type { Clock, Diagnostics, Random, Runtime } from "../../core/ports.ts";
import { DriftingClock } from "../drifting-clock.ts";
import { epochMs } from "../node/server.ts";
import type { Scene } from "../scene.ts";
import type { SeededRandom } from "../seeded-random.ts";

export interface ProcessPlan {
  /** Rate of the process's clocks relative to the world's time. */
  readonly rate: number;
  /** Offset of the wall clock from the world's time when the process starts. */
  readonly wallSkewMs: number;
}

type Source = "timer" | "network";

/** One client process with its own clocks, timers and random numbers. It can pause and crash. */
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
  /** World's time when the library last cancelled an overdue timer. -1 if there is none. */
  #overdueMs = -1;
  /** Number of overdue timers that were cancelled and replaced since a timer last fired. */
  #putOffs = 0;
  /** World's time when the code under test last read the wall clock. */
  #lookedMs = -1;
  /** Difference between wall clock and monotonic clock when the wall clock was last read. */
  #offsetMs: number;
  /** Sum of all forward steps of the wall clock that its readings showed. */
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

  /** Returns monotonic time plus the time that the wall clock gained on it between readings. */
  steadyMs(): number {
    return this.monotonicMs() + this.#gainedMs;
  }

  /** True if the code under test has read the wall clock after the world's time `ms`. */
  hasLookedSince(ms: number): boolean {
    return this.#lookedMs > ms;
  }

  /** Returns the total time for which the process was paused, in the world's time. */
  pausedMs(): number {
    return this.#pausedMs + (this.isPaused ? this.#scene.nowMs - this.#pausedSinceMs : 0);
  }

  /** Returns how much of the world's time has passed since the last pause ended. */
  runsForMs(): number {
    return this.#scene.nowMs - this.#resumedMs;
  }

  /** Runs code of this process: now, after the current pause, or never if the process crashed. */
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

  /** Ends one pause. Returns true if the process runs again, because no other pause overlaps. */
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

  /** Waits for `ms` of the monotonic clock, by a timer of this process. */
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
        // Timers of Node.js count whole milliseconds from the start of the event loop's turn. So
        // they sometimes fire early.
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
    // A smaller difference may be a rounding error of fractional milliseconds.
    if (Math.abs(offsetMs - this.#offsetMs) < 0.5) return;
    this.#gainedMs += Math.max(0, offsetMs - this.#offsetMs);
    this.#offsetMs = offsetMs;
  }

  /**
   * Records a failure if the library twice in a row cancels an overdue timer and sets a new one. In
   * a busy process the work of that timer could be postponed for ever. One case may be a
   * coincidence: the timer was not needed any more, and the new timer has another purpose.
   */
  #watchSet(delayMs: number): void {
    if (delayMs > 0 || this.#overdueMs !== this.#scene.nowMs) return;
    // Only the first timer that is set after the cancel can replace the cancelled timer.
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
        // A suspend stopped the monotonic clock meanwhile, so the timer is not due yet.
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
