import type { Scheduler, Task } from "../../../core/time/scheduler.ts";
import type { NodeCall } from "../commands/node-call.ts";
import type { NodeReply } from "../node/node-reply.ts";
import type { RedisNode } from "../node/node.ts";
import type { ReleaseReply } from "../commands/operation.ts";
import { isPermanent } from "../commands/refusals.ts";

export interface Debt {
  readonly node: RedisNode;
  readonly call: NodeCall<ReleaseReply>;
  /** Monotonic time at which the release was first sent. */
  readonly sinceMs: number;
  /** Monotonic time after which the key has expired. */
  readonly untilMs: number;
}

const firstPauseMs = 100;
const pauseMsMax = 2_000;
/** Limit of owed releases. Above it, a release is not sent again: its key expires. */
const debtsMax = 10_000;

/**
 * True if the release need not be sent again: its script ran, or the server refuses it for good.
 * After any other error (BUSY, LOADING, MISCONF, CLUSTERDOWN, …) the key is still there.
 */
export function endsDebt(reply: NodeReply<ReleaseReply>): boolean {
  return reply.kind === "reply" || (reply.kind === "error" && isPermanent(reply.error));
}

/**
 * Releases that a node has not confirmed. Each is sent again until the node confirms it, or until
 * the key has expired: a lock without a holder must not block others. A missing reply counts like
 * an error, because a driver may drop a command and report nothing.
 */
export class OwedReleases {
  readonly #scheduler: Scheduler;
  readonly #debts = new Set<Debt>();
  /** Nodes without a reply to the last try: they get one release at a time. */
  readonly #silent = new Set<RedisNode>();
  #timer: Task | undefined;
  #pauseMs = firstPauseMs;
  #closed = false;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  get size(): number {
    return this.#debts.size;
  }

  /** Adds a release that is not confirmed yet. Call `settle` if the node confirms it later. */
  owe(node: RedisNode, call: NodeCall<ReleaseReply>, sinceMs: number, lifeMs: number): Debt {
    const debt = { node, call, sinceMs, untilMs: sinceMs + lifeMs };
    if (this.#closed || this.#debts.size >= debtsMax) return debt;
    this.#debts.add(debt);
    this.#arm();
    return debt;
  }

  settle(debt: Debt): void {
    this.#debts.delete(debt);
  }

  /**
   * Sends every release that a node has not confirmed once more. Resolves when all nodes have
   * replied, or after `timeoutMs`.
   */
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
    this.#timer = this.#scheduler.at(nowMs + this.#pauseMs, false, () => this.#tryAll());
  }

  /** Sends without waiting for replies: a silent node must not delay the releases of the others. */
  #tryAll(): void {
    this.#timer = undefined;
    const tried = new Set<RedisNode>();
    const nowMs = this.#scheduler.clock.monotonicMs();
    for (const debt of this.#debts) {
      if (nowMs >= debt.untilMs) {
        this.#debts.delete(debt);
        continue;
      }
      // The release was sent a moment ago, so the reply is probably on its way.
      if (nowMs - debt.sinceMs < firstPauseMs) continue;
      if (this.#silent.has(debt.node) && tried.has(debt.node)) continue;
      tried.add(debt.node);
      void this.#try(debt);
    }
    for (const node of tried) this.#silent.add(node);
    this.#pauseMs = tried.size === 0 ? firstPauseMs : Math.min(pauseMsMax, this.#pauseMs * 2);
    this.#arm();
  }

  /**
   * Moves the debt to the end, so that the next single try is for another key: a Cluster may refuse
   * only some slots.
   */
  #putLast(debt: Debt): void {
    if (this.#debts.delete(debt)) this.#debts.add(debt);
  }

  #try(debt: Debt): Promise<void> {
    if (this.#scheduler.clock.monotonicMs() >= debt.untilMs) {
      this.#debts.delete(debt);
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const settle = (_: number, reply: NodeReply<ReleaseReply>): void => {
        if (reply.kind === "reply") {
          this.#silent.delete(debt.node);
          this.#pauseMs = firstPauseMs;
        }
        if (endsDebt(reply)) this.settle(debt);
        else this.#putLast(debt);
        resolve();
      };
      debt.node.run(debt.call, { isWanted: () => this.#debts.has(debt), settle }, 0);
    });
  }
}
