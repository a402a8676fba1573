import { EventQueue, type QueuedEvent } from "./event-queue.ts";
import type { SeededRandom } from "./seeded-random.ts";
import { Trace } from "./trace.ts";

/** Time, chance and memory of one world: what nodes, links and processes have in common. */
export class Scene {
  readonly random: SeededRandom;
  readonly trace: Trace;
  readonly #queue = new EventQueue();
  #nowMs = 0;
  #entered = false;

  constructor(random: SeededRandom, keepTrace: boolean) {
    this.random = random;
    this.trace = new Trace(keepTrace);
  }

  /** The world's own time, which nobody inside can read. */
  get nowMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, run: () => void): QueuedEvent {
    return this.#queue.push(this.#nowMs + Math.max(0, delayMs), run);
  }

  tell(lane: string, kind: string, text: string): void {
    this.trace.add(this.#nowMs, lane, kind, text);
  }

  /** Code of a process is about to run: what it leaves in the microtask queue must run too. */
  enter(): void {
    this.#entered = true;
  }

  /** Runs the next event. Returns whether a process ran, or undefined when nothing is left. */
  step(): boolean | undefined {
    const event = this.#queue.pop();
    if (event === undefined) return undefined;
    this.#nowMs = event.atMs;
    this.#entered = false;
    event.run();
    return this.#entered;
  }
}
