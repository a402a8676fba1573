import type { CancelTimer, Clock } from "../core/ports.ts";

export interface ManualClockOptions {
  /** Where the monotonic clock begins. @default 0 */
  readonly monotonicMs?: number;
  /** Where the wall clock begins. @default the first second of 2030, UTC */
  readonly wallMs?: number;
  /** What the clock says of its own timers. @default 0: they fire to the moment */
  readonly timerSlackMs?: number;
}

interface Timer {
  readonly dueMs: number;
  readonly keepAlive: boolean;
  readonly callback: () => void;
}

/** Beyond this in one `advance`, a timer sets itself again and again without time going by. */
const callbacksMax = 1_000_000;
const newYear2030Ms = 1_893_456_000_000;

/**
 * Time that moves only when told. Timers run in the order in which they are due, those of the same
 * moment in the order in which they were set, and all that follows from one of them has happened
 * before the next one runs. So the same test takes the same course each time.
 */
export class ManualClock implements Clock {
  readonly timerSlackMs: number;
  readonly #timers = new Set<Timer>();
  #monotonicMs: number;
  #wallMs: number;
  #advancing = false;

  constructor(options: ManualClockOptions = {}) {
    this.#monotonicMs = options.monotonicMs ?? 0;
    this.#wallMs = options.wallMs ?? newYear2030Ms;
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

  /** How many timers wait to run. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** How many of them would keep a process running. */
  get keepingAlive(): number {
    return [...this.#timers].filter(({ keepAlive }) => keepAlive).length;
  }

  /**
   * Lets `ms` go by on both clocks, running what is due on the way. Rejects with the error of a
   * timer that throws, and when it is called while another `advance` is under way.
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
   * Both clocks jump by `ms` and no timer runs, as when the process was stopped or its event loop
   * blocked. What is overdue runs at the next `advance`, also one of 0 ms: what a test looks at
   * before that is what user code sees first after a pause.
   */
  pause(ms: number): void {
    if (!(ms >= 0)) throw new RangeError(`a pause cannot last ${ms} ms`);
    this.#move(ms);
  }

  /** Somebody sets the wall clock: forward, or with a negative `ms` back. */
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

// Kept as they are now: fake timers, installed later, must not stop a manual clock.
const immediately = globalThis.setImmediate as typeof setImmediate | undefined;
const later = globalThis.setTimeout;

/** Resolves when no promise continuation is left to run: a new turn of the event loop. */
export function settle(): Promise<void> {
  return new Promise((resolve) => {
    if (immediately === undefined) later(resolve, 0);
    else immediately(resolve);
  });
}
