import type { Scheduler, Task } from "../../../core/time/scheduler.ts";
import type { NodeCall } from "../node-call.ts";
import type { NodeFailure, NodeReply } from "../node-reply.ts";
import type { RedisNode } from "../node/node.ts";
import type { Listener } from "../node/sender.ts";
import { indicesIn, nodeSetOf, type NodeSet } from "./node-set.ts";

/** A node that timed out, and the reply that stands for it. */
export interface TimedOut {
  readonly index: number;
  readonly reply: NodeFailure;
}

export interface RoundOptions<Reply> {
  readonly nodes: readonly RedisNode[];
  /** Nodes to send the call to; all if left out. */
  readonly among?: readonly number[] | undefined;
  /**
   * Number of replies that suffices. If so many other nodes respond, silent nodes are skipped: they
   * get the call only if the others have replied and the round still lasts.
   */
  readonly enough?: number | undefined;
  readonly call: NodeCall<Reply>;
  readonly scheduler: Scheduler;
  /** Current monotonic time, if the caller has just read it. perf: saves a second reading. */
  readonly nowMs?: number;
  readonly timeoutMs: number;
  /** Called before a delayed command is sent. False if it is no longer of use. */
  wanted(): boolean;
  /**
   * Called once per node while the round lasts: with its reply, or with `unknown` when it times
   * out. Called again, with `late`, when a reply arrives after that.
   */
  onReply(index: number, reply: NodeReply<Reply>, late: boolean): void;
  /** Called with all nodes that timed out, before `onReply` is called for each of them. */
  onTimeUp?(timedOut: readonly TimedOut[]): void;
}

/**
 * Sends one call to several nodes at once. perf (sequential): the round itself is the timer of all
 * nodes and the listener for their replies.
 */
export class Round<Reply> implements Task, Listener<Reply> {
  /** For the scheduler. */ dueMs = 0;
  /** For the scheduler. */ heapIndex = -1;
  readonly #options: RoundOptions<Reply>;
  /** Nodes that have neither replied nor timed out. */
  #pending: NodeSet = 0;
  /** Nodes that are skipped so far: they were sent nothing. */
  #skipped: NodeSet = 0;

  constructor(options: RoundOptions<Reply>) {
    this.#options = options;
    const { nodes, among, scheduler, timeoutMs } = options;
    this.#pending = nodeSetOf(among, nodes.length);
    const nowMs = options.nowMs ?? scheduler.clock.monotonicMs();
    scheduler.schedule(this, nowMs + timeoutMs);
    if (options.enough !== undefined) this.#skipSilent(options.enough, nowMs);
    this.#send(this.#pending & ~this.#skipped);
  }

  /** True: waiting for a reply keeps the process running. */
  get keepAlive(): boolean {
    return true;
  }

  get isBrief(): boolean {
    return true;
  }

  /** Nodes that have neither replied nor timed out. */
  get pending(): readonly number[] {
    return indicesIn(this.#pending);
  }

  /** Pending nodes that were sent nothing. */
  get skipped(): NodeSet {
    return this.#skipped;
  }

  /** Stops waiting, because the outcome is certain. Replies that arrive after this are late. */
  end(): void {
    this.#pending = 0;
    this.#skipped = 0;
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
    // All nodes that were sent the call have replied, and that was not enough.
    if (this.#pending === this.#skipped) this.#sendToSkipped();
  }

  /** Runs when the time is up. */
  run(): void {
    const { nodes, timeoutMs } = this.#options;
    const late = indicesIn(this.#pending & ~this.#skipped);
    const skipped = indicesIn(this.#skipped);
    this.end();
    const error = new Error(`no answer within ${Math.round(timeoutMs)} ms`);
    const replies: TimedOut[] = [];
    for (const index of late) {
      const reply = nodes[index]?.timedOut(error);
      if (reply !== undefined) replies.push({ index, reply });
    }
    this.#options.onTimeUp?.(replies);
    for (const { index, reply } of replies) this.#options.onReply(index, reply, false);
    for (const index of skipped) this.#options.onReply(index, skippedReply, false);
  }

  #send(among: NodeSet): void {
    const { nodes, call } = this.#options;
    for (let index = 0; index < nodes.length; index += 1) {
      if ((among & (1 << index)) !== 0) nodes[index]?.run(call, this, index);
    }
  }

  #skipSilent(enough: number, nowMs: number): void {
    const { nodes } = this.#options;
    let skipped = 0;
    let left = nodes.length;
    for (let index = 0; index < nodes.length; index += 1) {
      if (nodes[index]?.shouldSkip(nowMs) !== true) continue;
      skipped |= 1 << index;
      left -= 1;
    }
    if (skipped === 0 || left < enough) return;
    this.#skipped = skipped;
    for (const index of indicesIn(skipped)) nodes[index]?.reportSkipped(nowMs);
  }

  #sendToSkipped(): void {
    const skipped = this.#skipped;
    if (skipped === 0) return;
    this.#skipped = 0;
    this.#send(skipped);
  }
}

const skippedReply: NodeReply<never> = {
  kind: "unsent",
  error: new Error("it does not answer, and was skipped"),
};
