import type { LossReason } from "./errors.ts";
import type { Clock, Instant } from "./ports.ts";
import { clockStepMs } from "./validity.ts";

/** Below this it is over: whole milliseconds are all that a caller can do anything with. */
const leastLeftMs = 1;

/** When a lease ends, by whichever of the two clocks says so first, and never after `maxHold`. */
export class Deadline {
  readonly #clock: Clock;
  readonly #holdUntilMs: number;
  #untilMs: number;
  #wallUntilMs: number;

  constructor(clock: Clock, started: Instant, validityMs: number, maxHoldMs: number) {
    this.#clock = clock;
    this.#holdUntilMs = started.monotonicMs + maxHoldMs;
    this.#untilMs = Math.min(started.monotonicMs + validityMs, this.#holdUntilMs);
    this.#wallUntilMs = started.wallMs + validityMs;
  }

  leftMs(): number {
    return Math.min(
      this.#untilMs - this.#clock.monotonicMs(),
      this.#wallUntilMs - this.#clock.wallMs(),
    );
  }

  get isOver(): boolean {
    return this.leftMs() < leastLeftMs;
  }

  /** So little is left that a timer set for the end itself might miss it. */
  get isDue(): boolean {
    return this.leftMs() <= this.#dueLeftMs;
  }

  /** The moment, by the monotonic clock, at which `isDue` turns true. */
  get dueMs(): number {
    return this.#clock.monotonicMs() + this.leftMs() - leastLeftMs - this.#clock.timerSlackMs;
  }

  /** Moves the end, never nearer. */
  prolong(started: Instant, validityMs: number): void {
    const untilMs = Math.max(this.#untilMs, started.monotonicMs + validityMs);
    this.#untilMs = Math.min(untilMs, this.#holdUntilMs);
    this.#wallUntilMs = Math.max(this.#wallUntilMs, started.wallMs + validityMs);
  }

  /** Which clock or bound ended it; `otherwise` where its time simply ran out. */
  whyOver(otherwise: LossReason): LossReason {
    const leftMs = this.#untilMs - this.#clock.monotonicMs();
    const wallLeftMs = this.#wallUntilMs - this.#clock.wallMs();
    // Where both clocks agree but for a hair, it is the time that ran out.
    if (leftMs > this.#dueLeftMs && leftMs - wallLeftMs >= clockStepMs) return "clock";
    return this.#untilMs === this.#holdUntilMs ? "maxHold" : otherwise;
  }

  /** A hundredth more, because sums of fractional milliseconds do not come out even. */
  get #dueLeftMs(): number {
    return leastLeftMs + this.#clock.timerSlackMs + 0.01;
  }
}
