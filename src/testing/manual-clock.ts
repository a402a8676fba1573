import type { CancelTimer, Clock } from "../core/ports.ts";

export interface ManualClockOptions {
  /** Start of the monotonic clock. @default 0 */
  readonly monotonicMs?: number;
  /** Start of the wall clock. @default the first second of 2020, UTC */
  readonly wallMs?: number;
  /** Value of `timerSlackMs`. @default 0: timers fire when they are due */
  readonly timerSlackMs?: number;
}

interface Timer {
  readonly dueMs: number;
  readonly keepAlive: boolean;
  readonly callback: () => void;
}

/**
 * Limit for timers in one `advance`. More timers mean that one of them sets itself again and again.
 */
const callbacksMax = 1_000_000;
// In the past, so that guards accept the fences of a memory store, which follow this clock.
const newYear2020Ms = 1_577_836_800_000;

/**
 * A clock that moves only when a test moves it. Timers run in the order in which they are due.
 * Timers that are due at the same time run in the order in which they were set. All promise
 * continuations of a timer run before the next timer. So every run of a test takes the same course.
 */
export class ManualClock implements Clock {
  readonly timerSlackMs: number;
  readonly #timers = new Set<Timer>();
  #monotonicMs: number;
  #wallMs: number;
  #advancing = false;

  constructor(options: ManualClockOptions = {}) {
    this.#monotonicMs = options.monotonicMs ?? 0;
    this.#wallMs = options.wallMs ?? newYear2020Ms;
    this.timerSlackMs = options.timerSlackMs ?? 0;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  wallMs(): number {
    return this.#wallMs;
  }

  setTimer(delayMs: number, keepAlive: boolean, callback: () => void): CancelTimer {
    const dueMs = this.#monotonicMs + Math.max(0, delayMs);
    const timer: Timer = { dueMs, keepAlive, callback };
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }

  /** Returns the number of timers that wait to run. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** Returns the number of timers that would keep a process running. */
  get keepingAlive(): number {
    return [...this.#timers].filter(({ keepAlive }) => keepAlive).length;
  }

  /**
   * Moves both clocks forward by `ms`, and runs the timers that become due. Rejects with the error
   * of a timer that throws, and if another `advance` is under way.
   */
  async advance(ms: number): Promise<void> {
    if (!(ms >= 0)) throw new RangeError(`time cannot advance by ${ms} ms`);
    if (this.#advancing) throw new Error("advance is under way already: await it first");
    this.#advancing = true;
    try {
      const untilMs = this.#monotonicMs + ms;
      await settle();
      for (let count = 0; ; count += 1) {
        const timer = this.#next();
        if (timer === undefined || timer.dueMs > untilMs) break;
        if (count >= callbacksMax) throw new Error(`${callbacksMax} timers ran in one advance`);
        this.#timers.delete(timer);
        this.#move(timer.dueMs - this.#monotonicMs);
        timer.callback();
        await settle();
      }
      this.#move(untilMs - this.#monotonicMs);
    } finally {
      this.#advancing = false;
    }
  }

  /**
   * Moves both clocks forward by `ms` without running timers, as if the process was stopped or its
   * event loop blocked. Overdue timers run at the next `advance`, even of 0 ms. Before that, a test
   * observes what user code observes first after a pause.
   */
  pause(ms: number): void {
    if (!(ms >= 0)) throw new RangeError(`a pause cannot last ${ms} ms`);
    this.#move(ms);
  }

  /** Sets the wall clock forward by `ms`, or back if `ms` is negative. */
  stepWall(ms: number): void {
    this.#wallMs += ms;
  }

  #next(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (first === undefined || timer.dueMs < first.dueMs) first = timer;
    }
    return first;
  }

  #move(ms: number): void {
    if (ms <= 0) return;
    this.#monotonicMs += ms;
    this.#wallMs += ms;
  }
}

// Saves the timers at load, so that fake timers that are installed later cannot stop a manual
// clock.
const immediately = globalThis.setImmediate as typeof setImmediate | undefined;
const later = globalThis.setTimeout;

/** Resolves in a new iteration of the event loop, when no promise continuation is left to run. */
export function settle(): Promise<void> {
  return new Promise((resolve) => {
    if (immediately === undefined) later(resolve, 0);
    else immediately(resolve);
  });
}
