import type { Scheduler, Task } from "../../../core/scheduler.ts";
import type { NodeCall } from "../node-call.ts";
import type { RedisNode } from "../node.ts";
import type { ReleaseReply } from "../replies.ts";

interface Debt {
  readonly node: RedisNode;
  readonly call: NodeCall<ReleaseReply>;
  /** After this the key has expired by itself. */
  readonly untilMs: number;
}

const firstPauseMs = 100;
const pauseMsMax = 2_000;
/** More than this and the keys are left to their TTL. */
const debtsMax = 10_000;

/**
 * Releases that a lost connection kept from a node. They are tried again until the node confirms,
 * or the key is gone by its TTL anyway: a lock nobody holds must not block others longer than it
 * has to.
 */
export class OwedReleases {
  readonly #scheduler: Scheduler;
  #debts = new Set<Debt>();
  #timer: Task | undefined;
  #pauseMs = firstPauseMs;
  #closed = false;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  get size(): number {
    return this.#debts.size;
  }

  owe(node: RedisNode, call: NodeCall<ReleaseReply>, untilMs: number): void {
    if (this.#closed || this.#debts.size >= debtsMax) return;
    this.#debts.add({ node, call, untilMs });
    this.#arm();
  }

  /** One last try of everything owed; resolves when all have answered, or at once if none is. */
  async close(timeoutMs: number): Promise<void> {
    this.#closed = true;
    if (this.#timer !== undefined) this.#scheduler.cancel(this.#timer);
    const tries = [...this.#debts].map((debt) => this.#try(debt));
    if (tries.length === 0) return;
    await new Promise<void>((resolve) => {
      const nowMs = this.#scheduler.clock.monotonicMs();
      const timer = this.#scheduler.at(nowMs + timeoutMs, true, resolve);
      void Promise.all(tries).then(() => {
        this.#scheduler.cancel(timer);
        resolve();
      });
    });
  }

  #arm(): void {
    if (this.#timer !== undefined || this.#debts.size === 0 || this.#closed) return;
    const nowMs = this.#scheduler.clock.monotonicMs();
    this.#timer = this.#scheduler.at(nowMs + this.#pauseMs, false, () => void this.#tryAll());
  }

  async #tryAll(): Promise<void> {
    this.#timer = undefined;
    const before = this.#debts.size;
    await Promise.all([...this.#debts].map((debt) => this.#try(debt)));
    const progress = this.#debts.size < before;
    this.#pauseMs = progress ? firstPauseMs : Math.min(pauseMsMax, this.#pauseMs * 2);
    this.#arm();
  }

  #try(debt: Debt): Promise<void> {
    if (this.#scheduler.clock.monotonicMs() >= debt.untilMs) {
      this.#debts.delete(debt);
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      debt.node.run(
        debt.call,
        () => true,
        (reply) => {
          if (reply.kind === "reply" || reply.kind === "error") this.#debts.delete(debt);
          resolve();
        },
      );
    });
  }
}
