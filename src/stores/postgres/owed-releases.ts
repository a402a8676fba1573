import type { Scheduler, Task } from "../../core/time/scheduler.ts";
import type { Outbox } from "./outbox.ts";

/** A release that the server has not confirmed. */
interface Debt {
  readonly resources: readonly string[];
  readonly owner: string;
  /** Monotonic time after which the lock has expired. */
  readonly untilMs: number;
}

const firstPauseMs = 100;
const pauseMsMax = 2_000;
/** Limit of owed releases. Above it, a release is not sent again: its lock expires. */
const debtsMax = 10_000;

/**
 * Releases that are sent again until the server confirms them, or until the lock has expired: a
 * lock without a holder must not block others.
 */
export class OwedReleases {
  readonly #outbox: Outbox;
  readonly #scheduler: Scheduler;
  readonly #debts = new Set<Debt>();
  /** Releases under way. `close` waits for them. */
  readonly #underWay = new Set<Promise<void>>();
  #task: Task | undefined;
  #pauseMs = firstPauseMs;
  #closed = false;

  constructor(outbox: Outbox, scheduler: Scheduler) {
    this.#outbox = outbox;
    this.#scheduler = scheduler;
  }

  /**
   * Releases what an attempt may have locked. Resolves after the first try. `settled` resolves when
   * the attempt's statement has ended: it may still run, and lock the resources, until then.
   */
  async giveBack(
    resources: readonly string[],
    owner: string,
    ttlMs: number,
    settled: Promise<unknown>,
  ): Promise<void> {
    const debt = { resources, owner, untilMs: this.#scheduler.clock.monotonicMs() + ttlMs };
    let isSettled = false;
    const again = settled.then(() => {
      isSettled = true;
    });
    await this.#try(debt);
    if (!isSettled) void again.then(() => this.#track(this.#try(debt)));
  }

  /** Sends a release again later. */
  owe(resources: readonly string[], owner: string, ttlMs: number): void {
    this.#add({ resources, owner, untilMs: this.#scheduler.clock.monotonicMs() + ttlMs });
  }

  /** Sends each owed release once more. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#task !== undefined) this.#scheduler.cancel(this.#task);
    await Promise.all([...this.#underWay, ...[...this.#debts].map((debt) => this.#try(debt))]);
  }

  #add(debt: Debt): void {
    if (this.#debts.size >= debtsMax) return;
    this.#debts.add(debt);
    if (this.#task !== undefined || this.#closed) return;
    const dueMs = this.#scheduler.clock.monotonicMs() + this.#pauseMs;
    this.#task = this.#scheduler.at(dueMs, false, () => this.#track(this.#tryAll()));
  }

  async #tryAll(): Promise<void> {
    const debts = [...this.#debts];
    const before = debts.length;
    await Promise.all(debts.map((debt) => this.#try(debt)));
    this.#pauseMs =
      this.#debts.size < before ? firstPauseMs : Math.min(pauseMsMax, this.#pauseMs * 2);
    this.#task = undefined;
    const [next] = this.#debts;
    if (next !== undefined) this.#add(next);
  }

  async #try(debt: Debt): Promise<void> {
    this.#debts.delete(debt);
    if (this.#scheduler.clock.monotonicMs() >= debt.untilMs) return;
    const { resources, owner } = debt;
    const answer = await this.#outbox.send({ do: "release", resources, owner });
    const isDone = answer.ok ? answer.value.result.is !== "busy" : !answer.failure.retryable;
    if (!isDone) this.#add(debt);
  }

  #track(work: Promise<void>): void {
    this.#underWay.add(work);
    void work.finally(() => this.#underWay.delete(work));
  }
}
