import type { Scheduler, Task } from "../../../core/scheduler.ts";
import type { NodeCall } from "../node-call.ts";
import type { NodeFailure, NodeReply } from "../node-reply.ts";
import type { RedisNode } from "../node.ts";
import type { Listener } from "../sender.ts";
import { bitsOf, indicesOf } from "./bits.ts";

/** A node whose time was up, and how that counts. */
export interface TimedOut {
  readonly index: number;
  readonly reply: NodeFailure;
}

export interface RoundOptions<Reply> {
  readonly nodes: readonly RedisNode[];
  /** Which of the nodes to ask; all of them when left out. */
  readonly among?: readonly number[] | undefined;
  /**
   * Where so many others answer, nodes that do not are left alone at first; they are asked after
   * all when the others have answered and the round still lasts.
   */
  readonly enough?: number | undefined;
  readonly call: NodeCall<Reply>;
  readonly scheduler: Scheduler;
  /** The time by the monotonic clock, where the caller has just looked. */
  readonly nowMs?: number;
  readonly timeoutMs: number;
  /** Asked before a command that had to wait is sent after all. */
  wanted(): boolean;
  /**
   * Each node is told of once while the round lasts: its answer, or "unknown" when its time is up.
   * An answer that comes after that is told again, with `late`.
   */
  onReply(index: number, reply: NodeReply<Reply>, late: boolean): void;
  /** Called with all nodes whose time is up, before `onReply` reports each of them. */
  onTimeUp?(timedOut: readonly TimedOut[]): void;
}

/**
 * One fan-out of the same call to several nodes at once. It is its own timer, one for all of them,
 * and its own ear.
 */
export class Round<Reply> implements Task, Listener<Reply> {
  /** For the scheduler. */ dueMs = 0;
  /** For the scheduler. */ heapIndex = -1;
  readonly #options: RoundOptions<Reply>;
  /** A bit for each node that has not answered and whose time is not up: at most 31 of them. */
  #pending = 0;
  /** A bit for each node that is left alone as yet. */
  #spared = 0;

  constructor(options: RoundOptions<Reply>) {
    this.#options = options;
    const { nodes, among, scheduler, timeoutMs } = options;
    this.#pending = bitsOf(among, nodes.length);
    const nowMs = options.nowMs ?? scheduler.clock.monotonicMs();
    scheduler.schedule(this, nowMs + timeoutMs);
    if (options.enough !== undefined) this.#spare(options.enough, nowMs);
    this.#ask(this.#pending & ~this.#spared);
  }

  /** Waiting for an answer keeps the process running. */
  get keepAlive(): boolean {
    return true;
  }

  get isBrief(): boolean {
    return true;
  }

  /** Nodes that have not answered and whose time is not up. */
  get pending(): readonly number[] {
    return indicesOf(this.#pending);
  }

  /** Those of them that were not even asked, a bit for each. */
  get spared(): number {
    return this.#spared;
  }

  /** The outcome is certain: no more waiting. Answers still to come are late. */
  end(): void {
    this.#pending = 0;
    this.#spared = 0;
    this.#options.scheduler.cancel(this);
  }

  isWanted(): boolean {
    return this.#options.wanted();
  }

  settle(index: number, reply: NodeReply<Reply>): void {
    const inTime = (this.#pending & (1 << index)) !== 0;
    this.#pending &= ~(1 << index);
    if (inTime && this.#pending === 0) this.end();
    this.#options.onReply(index, reply, !inTime);
    // All who were asked have answered, and it was not enough.
    if (this.#pending === this.#spared) this.#askSpared();
  }

  /** Time is up. */
  run(): void {
    const { nodes, timeoutMs } = this.#options;
    const late = indicesOf(this.#pending & ~this.#spared);
    const spared = indicesOf(this.#spared);
    this.end();
    const error = new Error(`no answer within ${Math.round(timeoutMs)} ms`);
    const replies: TimedOut[] = [];
    for (const index of late) {
      const reply = nodes[index]?.timedOut(error);
      if (reply !== undefined) replies.push({ index, reply });
    }
    this.#options.onTimeUp?.(replies);
    for (const { index, reply } of replies) this.#options.onReply(index, reply, false);
    for (const index of spared) this.#options.onReply(index, leftAlone, false);
  }

  #ask(bits: number): void {
    const { nodes, call } = this.#options;
    for (let index = 0; index < nodes.length; index += 1) {
      if ((bits & (1 << index)) !== 0) nodes[index]?.run(call, this, index);
    }
  }

  #spare(enough: number, nowMs: number): void {
    const { nodes } = this.#options;
    let spared = 0;
    let left = nodes.length;
    for (let index = 0; index < nodes.length; index += 1) {
      if (nodes[index]?.holdsBack(nowMs) !== true) continue;
      spared |= 1 << index;
      left -= 1;
    }
    if (spared === 0 || left < enough) return;
    this.#spared = spared;
    for (const index of indicesOf(spared)) nodes[index]?.leaveAlone(nowMs);
  }

  #askSpared(): void {
    const spared = this.#spared;
    if (spared === 0) return;
    this.#spared = 0;
    this.#ask(spared);
  }
}

const leftAlone: NodeReply<never> = {
  kind: "unsent",
  error: new Error("it does not answer, and was not asked"),
};
