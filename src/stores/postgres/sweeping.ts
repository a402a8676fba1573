import type { SteadyRuntime } from "../../core/ports.ts";
import type { Connection } from "./connection.ts";

const hourMs = 3_600_000;
/** Rows of one sweep. A table with more of them is swept in several hours. */
const rowsMax = 10_000;

/**
 * Deletes rows of locks that were free for a day, about once an hour in each manager that acquires.
 * Fences come from a sequence, so they do not fall when the row of a lock is deleted.
 */
export class Sweeping {
  readonly #connection: Connection;
  readonly #runtime: SteadyRuntime;
  #dueMs: number;
  #underWay: Promise<unknown> | undefined;

  constructor(connection: Connection, runtime: SteadyRuntime) {
    this.#connection = connection;
    this.#runtime = runtime;
    // Managers that start together do not sweep together.
    this.#dueMs = runtime.clock.monotonicMs() + runtime.random.fraction() * hourMs;
  }

  /** Called after each grant. Begins a sweep if one is due. */
  begin(): void {
    const nowMs = this.#runtime.clock.monotonicMs();
    if (nowMs < this.#dueMs || this.#underWay !== undefined) return;
    this.#dueMs = nowMs + hourMs * (0.5 + this.#runtime.random.fraction());
    const text = `SELECT {schema}.sweep_v1(interval '1 day', ${rowsMax})`;
    this.#underWay = this.#connection
      .send(text, [], () => undefined)
      .finally(() => {
        this.#underWay = undefined;
      });
  }

  async close(): Promise<void> {
    this.#dueMs = Infinity;
    await this.#underWay;
  }
}
