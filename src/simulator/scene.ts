import { EventQueue, type QueuedEvent } from "./event-queue.ts";
import type { SeededRandom } from "./seeded-random.ts";
import { Trace, type TraceMode } from "./trace.ts";

/** Time, randomness and trace of one world, shared by its nodes, links and processes. */
export class Scene {
  readonly random: SeededRandom;
  readonly trace: Trace;
  readonly #queue = new EventQueue();
  #nowMs = 0;
  #entered = false;

  constructor(random: SeededRandom, trace: TraceMode) {
    this.random = random;
    this.trace = new Trace(trace);
  }

  /** The world's virtual time. Code under test reads only the clocks of its process. */
  get nowMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, run: () => void): QueuedEvent {
    return this.#queue.push(this.#nowMs + Math.max(0, delayMs), run);
  }

  add(lane: string, kind: string, text: string): void {
    this.trace.add(this.#nowMs, lane, kind, text);
  }

  /** Called before code of a process runs. `step` then returns true for the current event. */
  enter(): void {
    this.#entered = true;
  }

  /**
   * Runs the next event. Returns true if code of a process ran, and undefined if no event is left.
   */
  step(): boolean | undefined {
    const event = this.#queue.pop();
    if (event === undefined) return undefined;
    this.#nowMs = event.atMs;
    this.#entered = false;
    event.run();
    return this.#entered;
  }
}
