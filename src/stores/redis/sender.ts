import type { RedisConnection } from "../../clients/contract.ts";
import type { Clock, Instant } from "../../core/ports.ts";
import { now } from "../../core/validity.ts";
import { firstReplyAt, type Batches, type BatchPart } from "./batch.ts";
import type { NodeCall } from "./node-call.ts";
import { noInfo, noLongerWanted, type NodeReply } from "./node-reply.ts";

/** Who waits for answers; one object for the calls to all nodes. */
export interface Listener<Reply> {
  /** Asked again before anything is sent late: a grant that nobody waits for must not be made. */
  isWanted(): boolean;
  /** Told once of each node that it asked. */
  settle(index: number, reply: NodeReply<Reply>): void;
}

/** A call on its way to a node, and whom to tell of the answer. */
export interface Outgoing<Reply> {
  readonly call: NodeCall<Reply>;
  readonly to: Listener<Reply>;
  /** Which of the listener's nodes it goes to. */
  readonly index: number;
}

/** What the sender needs from the node it belongs to. */
export interface SenderHost {
  readonly connection: RedisConnection;
  readonly clock: Clock;
  mustVerify(): boolean;
  infoDenied(): boolean;
  /** The server answered, with whatever. */
  heard(reply: unknown, sent: Instant): void;
  failed(cause: unknown): Exclude<NodeReply<never>, { kind: "reply" }>;
}

/** Sends calls alone or several in one, and goes the long way where a server lacks a script. */
export class Sender {
  readonly #host: SenderHost;
  #sent = 0;
  #answered = 0;
  /** The last answer, or what was sent first after all had been answered. */
  #quietSinceMs = 0;

  constructor(host: SenderHost) {
    this.#host = host;
  }

  /**
   * Commands sent after the last one that was answered. A connection answers in order: what was
   * sent before and is still open was lost by the driver, and will never be told of.
   */
  get inFlight(): number {
    return this.#sent - this.#answered;
  }

  /** For how long something has been in flight without a word. */
  silentMs(nowMs: number): number {
    return this.inFlight > 0 ? nowMs - this.#quietSinceMs : 0;
  }

  send<Reply>(outgoing: Outgoing<Reply>): void {
    const { call, to, index } = outgoing;
    const host = this.#host;
    const sent = now(host.clock);
    const place = this.#depart(sent.monotonicMs);
    // Not by way of `#exchange`: what goes alone is one of very many, and each function counts.
    host.connection.send(call.key, call.first(host.mustVerify())).then(
      (reply) => {
        this.#answer(place);
        host.heard(reply, sent);
        to.settle(index, read(call, reply, false));
      },
      (error: unknown) => {
        this.#answer(place);
        this.#sendAgain(outgoing, error);
      },
    );
  }

  /** The long way, where the error only means that. */
  #sendAgain<Reply>({ call, to, index }: Outgoing<Reply>, error: unknown): void {
    const settle = (reply: NodeReply<Reply>): void => to.settle(index, reply);
    const second = error instanceof Error ? call.fallback(error) : undefined;
    if (second === undefined) return settle(this.#host.failed(error));
    if (this.#host.infoDenied() && call.needsInfo === true) return settle(noInfo);
    // The node is well, it only lacked the script: nothing was applied.
    this.#host.heard(undefined, now(this.#host.clock));
    if (!to.isWanted()) return settle(noLongerWanted);
    const onSecond = (reply: unknown): void => settle(read(call, reply, true));
    this.#exchange(call.key, second, onSecond, (cause) => settle(this.#host.failed(cause)));
  }

  /** All in one call; each keeps its own verdict. */
  sendBatch(batches: Batches, items: readonly Outgoing<unknown>[]): void {
    this.#sendBatch(batches, items, false);
  }

  #sendBatch(batches: Batches, items: readonly Outgoing<unknown>[], byText: boolean): void {
    const parts: BatchPart[] = [];
    for (const { call } of items) if (call.part !== undefined) parts.push(call.part);
    const call = batches.callOf(parts);
    const command = byText ? call.whole() : call.first(this.#host.mustVerify());
    const onReply = (reply: unknown): void => {
      const replies: unknown[] = Array.isArray(reply) ? reply : [];
      let place = firstReplyAt(batches.batching);
      for (const { call, to, index } of items) {
        to.settle(index, readPart(call, replies[place]));
        place += 1;
      }
    };
    this.#exchange(call.key, command, onReply, (error) => {
      const failure = this.#host.failed(error);
      const lacking = error instanceof Error && error.message.startsWith("NOSCRIPT");
      if (failure.kind !== "error") {
        for (const { to, index } of items) to.settle(index, failure);
      } else if (lacking && this.#host.infoDenied() && batches.batching.strict) {
        for (const { to, index } of items) to.settle(index, noInfo);
      } else if (lacking && !byText) {
        this.#host.heard(undefined, now(this.#host.clock));
        this.#again(items, (wanted) => this.#sendBatch(batches, wanted, true));
      } else {
        // The server refused the whole: each on its own, so that one cannot fail the others.
        this.#again(items, (wanted) => {
          for (const item of wanted) this.send(item);
        });
      }
    });
  }

  /** Once more with what is still wanted: the rest may have been given back in the meantime. */
  #again(
    items: readonly Outgoing<unknown>[],
    send: (wanted: readonly Outgoing<unknown>[]) => void,
  ): void {
    const wanted = items.filter(({ to }) => to.isWanted());
    for (const item of items) {
      if (!wanted.includes(item)) item.to.settle(item.index, noLongerWanted);
    }
    if (wanted.length > 0) send(wanted);
  }

  #exchange(
    key: string,
    command: readonly string[],
    onReply: (reply: unknown) => void,
    onError: (error: unknown) => void,
  ): void {
    const sent = now(this.#host.clock);
    const place = this.#depart(sent.monotonicMs);
    this.#host.connection.send(key, command).then(
      (reply) => {
        this.#answer(place);
        this.#host.heard(reply, sent);
        onReply(reply);
      },
      (error: unknown) => {
        this.#answer(place);
        onError(error);
      },
    );
  }

  /** Returns its place among all that were sent. */
  #depart(nowMs: number): number {
    if (this.#sent === this.#answered) this.#quietSinceMs = nowMs;
    this.#sent += 1;
    return this.#sent;
  }

  #answer(place: number): void {
    this.#answered = Math.max(this.#answered, place);
    this.#quietSinceMs = this.#host.clock.monotonicMs();
  }
}

function read<Reply>(call: NodeCall<Reply>, reply: unknown, byFallback: boolean): NodeReply<Reply> {
  try {
    return { kind: "reply", reply: call.read(reply, byFallback) };
  } catch (error) {
    return misunderstood(error);
  }
}

function readPart<Reply>(call: NodeCall<Reply>, reply: unknown): NodeReply<Reply> {
  try {
    return { kind: "reply", reply: call.readPart(reply) };
  } catch (error) {
    return misunderstood(error);
  }
}

/** It answered, in a way we do not understand: applied or not, it is no vote for us. */
function misunderstood(error: unknown): NodeReply<never> {
  return { kind: "error", error: error instanceof Error ? error : new Error(String(error)) };
}
