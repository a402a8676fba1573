import type { Scheduler, Task } from "../../../core/scheduler.ts";
import type { NodeCall } from "../node-call.ts";
import type { NodeReply } from "../node-reply.ts";
import type { RedisNode } from "../node.ts";

export interface RoundOptions<Reply> {
  readonly nodes: readonly RedisNode[];
  /** Which of the nodes to ask; all of them when left out. */
  readonly among?: readonly number[];
  readonly call: NodeCall<Reply>;
  readonly scheduler: Scheduler;
  readonly timeoutMs: number;
  /** Asked before a command that had to wait is sent after all. */
  readonly wanted: () => boolean;
  /**
   * Each node is told of once while the round lasts: its answer, or "unknown" when its time is up.
   * An answer that comes after that is told again, with `late`.
   */
  readonly onReply: (index: number, reply: NodeReply<Reply>, late: boolean) => void;
}

/** One fan-out of the same call to several nodes at once, with one timer for all of them. */
export class Round<Reply> {
  readonly #options: RoundOptions<Reply>;
  readonly #pending = new Set<number>();
  #timer: Task | undefined;
  #ended = false;

  constructor(options: RoundOptions<Reply>) {
    this.#options = options;
    const { nodes, among, scheduler, timeoutMs } = options;
    const indices = among ?? nodes.keys();
    for (const index of indices) this.#pending.add(index);
    const dueMs = scheduler.clock.monotonicMs() + timeoutMs;
    this.#timer = scheduler.at(dueMs, true, () => this.#giveUp());
    for (const index of this.#pending) this.#ask(index);
  }

  /** Nodes that have not answered and whose time is not up. */
  get pending(): ReadonlySet<number> {
    return this.#pending;
  }

  /** The outcome is certain: no more waiting. Answers still to come are late. */
  end(): void {
    this.#ended = true;
    this.#pending.clear();
    if (this.#timer !== undefined) this.#options.scheduler.cancel(this.#timer);
    this.#timer = undefined;
  }

  #ask(index: number): void {
    const { nodes, call, wanted, onReply } = this.#options;
    nodes[index]?.run(call, wanted, (reply) => {
      const inTime = !this.#ended && this.#pending.delete(index);
      if (inTime && this.#pending.size === 0) this.end();
      onReply(index, reply, !inTime);
    });
  }

  #giveUp(): void {
    const { nodes, onReply, timeoutMs } = this.#options;
    const late = [...this.#pending];
    this.end();
    for (const index of late) {
      const error = new Error(`no answer within ${Math.round(timeoutMs)} ms`);
      nodes[index]?.timedOut(error);
      onReply(index, { kind: "unknown", error, timedOut: true }, false);
    }
  }
}
