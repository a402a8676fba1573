/**
 * One call to several nodes, and the replies.
 *
 * Problem: a node may be slow, frozen or gone. The others must not wait for it, and every request
 * to a dead node costs memory.
 *
 * Idea: a round sends the call to all nodes at once and has one timer for all of them. A round
 * skips a silent node if the other nodes can make a quorum. A skipped node receives the call only
 * if all others have replied and the outcome is still open. If a probe is due, the node is not
 * skipped.
 *
 * Limits: a round does not decide. Its listener ends it as soon as the outcome is certain. A reply
 * that arrives after that, or after the timeout, is passed on as late.
 */

import type { Scheduler, Task } from "../../../core/time/scheduler.ts";
import type { NodeCall } from "../commands/node-call.ts";
import type { NodeFailure, NodeReply } from "../node/node-reply.ts";
import type { RedisNode } from "../node/node.ts";
import type { Listener } from "../node/sender.ts";
import { indicesIn, nodeSetOf, type NodeSet } from "./node-set.ts";

/** A node that timed out, and the failure that the round reports for it. */
export interface TimedOut {
  readonly index: number;
  readonly reply: NodeFailure;
}

/** Receives the replies of a round. */
export interface RoundListener<Reply> {
  /** Called before a delayed command is sent. False if the command is no longer of use. */
  wanted(): boolean;
  /**
   * Called once per node while the round lasts: with its reply, or with `unknown` when it times
   * out. Called again, with `late`, when a reply arrives after that.
   */
  onReply(index: number, reply: NodeReply<Reply>, late: boolean): void;
  /** Called with all nodes that timed out, before `onReply` is called for each of them. */
  onTimeUp?(timedOut: readonly TimedOut[]): void;
}

/** Begins rounds to the nodes of one quorum. */
export class Rounds {
  readonly nodes: readonly RedisNode[];
  /** Majority of the nodes: floor(N / 2) + 1. Not configurable. */
  readonly size: number;
  readonly scheduler: Scheduler;
  /** All nodes as a set. */
  readonly all: NodeSet;

  constructor(nodes: readonly RedisNode[], size: number, scheduler: Scheduler) {
    this.nodes = nodes;
    this.size = size;
    this.scheduler = scheduler;
    this.all = nodeSetOf(undefined, nodes.length);
  }

  /** Sends to every node, however long it has been silent. */
  toAll<Reply>(
    call: NodeCall<Reply>,
    timeoutMs: number,
    listener: RoundListener<Reply>,
  ): Round<Reply> {
    return new Round(this, call, timeoutMs, listener, this.all);
  }

  /** Sends to `among`, however long they have been silent. */
  toSome<Reply>(
    among: NodeSet,
    call: NodeCall<Reply>,
    timeoutMs: number,
    listener: RoundListener<Reply>,
  ): Round<Reply> {
    return new Round(this, call, timeoutMs, listener, among);
  }

  /**
   * Sends to every node, but skips silent nodes if the others can make a quorum. `nowMs` is the
   * monotonic time. perf: it is a parameter, because the caller has just read the clock.
   */
  toQuorum<Reply>(
    call: NodeCall<Reply>,
    timeoutMs: number,
    listener: RoundListener<Reply>,
    nowMs: number,
  ): Round<Reply> {
    return new Round(this, call, timeoutMs, listener, this.all, nowMs);
  }
}

/** perf (sequential): the round itself is the timer for all nodes and the listener of each call. */
export class Round<Reply> implements Task, Listener<Reply> {
  /** For the scheduler. */ dueMs = 0;
  /** For the scheduler. */ heapIndex = -1;
  readonly #rounds: Rounds;
  readonly #call: NodeCall<Reply>;
  readonly #timeoutMs: number;
  readonly #listener: RoundListener<Reply>;
  /** Nodes that have neither replied nor timed out. */
  #pending: NodeSet;
  /** Pending nodes that were skipped: the call has not been sent to them. */
  #skipped: NodeSet = 0;

  /** Skips silent nodes if `skipsAtMs`, the current monotonic time, is given. */
  constructor(
    rounds: Rounds,
    call: NodeCall<Reply>,
    timeoutMs: number,
    listener: RoundListener<Reply>,
    among: NodeSet,
    skipsAtMs?: number,
  ) {
    this.#rounds = rounds;
    this.#call = call;
    this.#timeoutMs = timeoutMs;
    this.#listener = listener;
    this.#pending = among;
    const { scheduler } = rounds;
    const nowMs = skipsAtMs ?? scheduler.clock.monotonicMs();
    scheduler.schedule(this, nowMs + timeoutMs);
    if (skipsAtMs !== undefined) this.#skipSilent(nowMs);
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
  get pending(): NodeSet {
    return this.#pending;
  }

  /** Pending nodes to which the call has not been sent. */
  get skipped(): NodeSet {
    return this.#skipped;
  }

  /** Stops waiting, because the outcome is certain. Replies that arrive after this are late. */
  end(): void {
    this.#pending = 0;
    this.#skipped = 0;
    this.#rounds.scheduler.cancel(this);
  }

  isWanted(): boolean {
    return this.#listener.wanted();
  }

  settle(index: number, reply: NodeReply<Reply>): void {
    const inTime = (this.#pending & (1 << index)) !== 0;
    this.#pending &= ~(1 << index);
    if (inTime && this.#pending === 0) this.end();
    this.#listener.onReply(index, reply, !inTime);
    // All nodes that received the call have replied, and the outcome is still open.
    if (this.#pending === this.#skipped) this.#sendToSkipped();
  }

  /** Called by the scheduler when the time is up. */
  run(): void {
    const { nodes } = this.#rounds;
    const late = indicesIn(this.#pending & ~this.#skipped);
    const skipped = indicesIn(this.#skipped);
    this.end();
    const error = new Error(`no answer within ${Math.round(this.#timeoutMs)} ms`);
    const replies: TimedOut[] = [];
    for (const index of late) {
      const reply = nodes[index]?.health.timedOut(error);
      if (reply !== undefined) replies.push({ index, reply });
    }
    this.#listener.onTimeUp?.(replies);
    for (const { index, reply } of replies) this.#listener.onReply(index, reply, false);
    for (const index of skipped) this.#listener.onReply(index, skippedReply, false);
  }

  #send(among: NodeSet): void {
    const { nodes } = this.#rounds;
    for (let index = 0; index < nodes.length; index += 1) {
      if ((among & (1 << index)) !== 0) nodes[index]?.run(this.#call, this, index);
    }
  }

  #skipSilent(nowMs: number): void {
    const { nodes, size } = this.#rounds;
    let skipped = 0;
    let left = nodes.length;
    for (let index = 0; index < nodes.length; index += 1) {
      if (nodes[index]?.shouldSkip(nowMs) !== true) continue;
      skipped |= 1 << index;
      left -= 1;
    }
    if (skipped === 0 || left < size) return;
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
