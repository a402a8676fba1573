import type { Clock, Diagnostics, Random, Runtime } from "../../core/ports.ts";
import { DriftingClock } from "../drifting-clock.ts";
import { epochMs } from "../node/server.ts";
import type { Scene } from "../scene.ts";
import type { SeededRandom } from "../seeded-random.ts";

export interface ProcessPlan {
  /** How much its clocks gain on the world's. */
  readonly rate: number;
  /** How far its wall clock is ahead at the start. */
  readonly wallSkewMs: number;
}

type Source = "timer" | "network";

/** One client process: its own clocks, timers and chance, and what can befall it. */
export class SimulatedProcess {
  readonly name: string;
  readonly runtime: Runtime;
  readonly random: SeededRandom;
  readonly monotonic: DriftingClock;
  readonly wall: DriftingClock;
  /** Errors that listeners threw, or that the code under test let escape. */
  readonly failures: unknown[] = [];
  readonly #scene: Scene;
  #deferred: { readonly source: Source; readonly run: () => void }[] = [];
  #pauses = 0;
  #suspends = 0;
  #pausedSinceMs = 0;
  #pausedMs = 0;
  #resumedMs = -Infinity;
  #crashed = false;
  /** When a timer was last cancelled that should have fired already. */
  #overdueMs = -1;
  #putOffs = 0;
  /** When its code last looked at its wall clock, by the world's time. */
  #lookedMs = -1;
  /** The wall clock less the monotonic one at that look. */
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

  /** Whole milliseconds, as every wall clock of JavaScript. */
  wallMs(): number {
    return Math.floor(this.wall.at(this.#scene.nowMs));
  }

  /** Its monotonic time, and what its wall clock has gained on it from look to look. */
  steadyMs(): number {
    return this.monotonicMs() + this.#gainedMs;
  }

  /** Whether its code has looked at its clocks since then. */
  hasLookedSince(ms: number): boolean {
    return this.#lookedMs > ms;
  }

  /** The world's time that it has spent stopped so far. */
  pausedMs(): number {
    return this.#pausedMs + (this.isPaused ? this.#scene.nowMs - this.#pausedSinceMs : 0);
  }

  /** The world's time since it went on after its last pause. */
  runsForMs(): number {
    return this.#scene.nowMs - this.#resumedMs;
  }

  /** Runs code of this process now, or when it goes on, or never. */
  enter(source: Source, run: () => void): void {
    if (this.#crashed) return;
    if (this.isPaused) {
      this.#deferred.push({ source, run });
      return;
    }
    this.#scene.enter();
    run();
  }

  /** Stopped, as by SIGSTOP: time goes on. With `suspended`, its monotonic clock stands still. */
  pause(suspended: boolean): void {
    if (!this.isPaused) this.#pausedSinceMs = this.#scene.nowMs;
    this.#pauses += 1;
    if (!suspended) return;
    this.#suspends += 1;
    this.monotonic.hold(this.#scene.nowMs);
  }

  /** Returns whether it runs again, which it does after the last of overlapping pauses. */
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

  /** A pause of the process's own code, by its own timers. */
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
        // Whole milliseconds, counted from the start of the loop's turn: sometimes early.
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
    // Sums of fractional milliseconds do not come out even.
    if (Math.abs(offsetMs - this.#offsetMs) < 0.5) return;
    this.#gainedMs += Math.max(0, offsetMs - this.#offsetMs);
    this.#offsetMs = offsetMs;
  }

  /**
   * One that should have fired by now is about to; set anew, it could only fire later, and again
   * and again, for as long as the process is busy. Once may be chance: what it was for is over, and
   * something else is due at that very moment.
   */
  #watchSet(delayMs: number): void {
    if (delayMs > 0 || this.#overdueMs !== this.#scene.nowMs) return;
    // Only the first one that is set at that moment can be in its place.
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
        // The clock stood still meanwhile: it is not time yet.
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
