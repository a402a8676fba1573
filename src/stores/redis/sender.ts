import type { RedisConnection } from "../../clients/contract.ts";
import type { Instant, SteadyClock } from "../../core/ports.ts";
import { now } from "../../core/validity.ts";
import { firstReplyAt, type Batches, type BatchPart } from "./batch.ts";
import type { NodeCall } from "./node-call.ts";
import { noInfo, noLongerWanted, unproven, type NodeReply } from "./node-reply.ts";

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
  readonly clock: SteadyClock;
  mustVerify(): boolean;
  infoDenied(): boolean;
  /** The server answered, with whatever. */
  heard(reply: unknown, sent: Instant): void;
  failed(cause: unknown): Exclude<NodeReply<never>, { kind: "reply" }>;
}

/** The epoch of a call that was sent before and may have run then: equal to no other. */
const sentBefore = Symbol("sent before");

/** Sends calls alone or several in one, and goes the long way where a server lacks a script. */
export class Sender {
  readonly #host: SenderHost;
  /** Another value when the driver may have sent commands a second time. */
  readonly #epoch: () => unknown;
  #sent = 0;
  #answered = 0;
  /** The last answer, or what was sent first after all had been answered. */
  #quietSinceMs = 0;

  constructor(host: SenderHost) {
    const { connection } = host;
    this.#host = host;
    this.#epoch = epochOf(connection);
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
    this.#send(outgoing, this.#epoch(), false);
  }

  /** `epoch` is that of the first time it was sent. */
  #send<Reply>(outgoing: Outgoing<Reply>, epoch: unknown, isRepeat: boolean): void {
    const { call, to, index } = outgoing;
    const host = this.#host;
    const sent = now(host.clock);
    const place = this.#depart(sent.monotonicMs);
    // Not by way of `#exchange`: what goes alone is one of very many, and each function counts.
    handOver(host.connection, call.key, call.first(host.mustVerify())).then(
      (reply) => {
        this.#answer(place);
        host.heard(reply, sent);
        const answer = read(call, reply, false);
        if (epoch === this.#epoch()) to.settle(index, answer);
        else this.#settleResent(outgoing, answer, isRepeat);
      },
      (error: unknown) => {
        this.#answer(place);
        this.#sendWhole(outgoing, error, epoch, isRepeat);
      },
    );
  }

  /** The reply may be that of a second run. If it then proves nothing, the call is sent again. */
  #settleResent<Reply>(
    outgoing: Outgoing<Reply>,
    answer: NodeReply<Reply>,
    isRepeat: boolean,
  ): void {
    const { call, to, index } = outgoing;
    if (answer.kind !== "reply" || call.afterResend === undefined) return to.settle(index, answer);
    const reply = call.afterResend(answer.reply);
    if (reply !== undefined) to.settle(index, { kind: "reply", reply });
    else if (isRepeat || !to.isWanted()) to.settle(index, unproven);
    else this.#send(outgoing, this.#epoch(), true);
  }

  /** The long way, where the error only means that. */
  #sendWhole<Reply>(
    outgoing: Outgoing<Reply>,
    error: unknown,
    epoch: unknown,
    isRepeat: boolean,
  ): void {
    const { call, to, index } = outgoing;
    const settle = (reply: NodeReply<Reply>): void => to.settle(index, reply);
    const second = error instanceof Error ? call.fallback(error) : undefined;
    if (second === undefined) return settle(this.#host.failed(error));
    if (this.#host.infoDenied() && call.needsInfo === true) return settle(noInfo);
    // The node is well, it only lacked the script: nothing was applied.
    this.#host.heard(undefined, now(this.#host.clock));
    if (!to.isWanted()) return settle(noLongerWanted);
    const onSecond = (reply: unknown): void => {
      const answer = read(call, reply, true);
      if (epoch === this.#epoch()) settle(answer);
      else this.#settleResent(outgoing, answer, isRepeat);
    };
    this.#exchange(call.key, second, onSecond, (cause) => settle(this.#host.failed(cause)));
  }

  /** All in one call; each keeps its own verdict. */
  sendBatch(batches: Batches, items: readonly Outgoing<unknown>[]): void {
    this.#sendBatch(batches, items, this.#epoch(), false);
  }

  #sendBatch(
    batches: Batches,
    items: readonly Outgoing<unknown>[],
    epoch: unknown,
    byText: boolean,
  ): void {
    const parts: BatchPart[] = [];
    for (const { call } of items) if (call.part !== undefined) parts.push(call.part);
    const call = batches.callOf(parts);
    const command = byText ? call.whole() : call.first(this.#host.mustVerify());
    const onReply = (reply: unknown): void => {
      const replies: unknown[] = Array.isArray(reply) ? reply : [];
      const isFirstRun = epoch === this.#epoch();
      let place = firstReplyAt(batches.batching);
      for (const item of items) {
        const { call, to, index } = item;
        const answer = readPart(call, replies[place]);
        if (isFirstRun) to.settle(index, answer);
        else this.#settleResent(item, answer, false);
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
        this.#again(items, (wanted) => this.#sendBatch(batches, wanted, epoch, true));
      } else {
        // The server refused the whole: each on its own, so that one cannot fail the others. Some
        // of them may have been applied before it failed.
        this.#again(items, (wanted) => {
          for (const item of wanted) this.#send(item, sentBefore, false);
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
    handOver(this.#host.connection, key, command).then(
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

/** A client that throws has rejected: the rest of the round goes on as with any other failure. */
function handOver(
  connection: RedisConnection,
  key: string,
  command: readonly string[],
): Promise<unknown> {
  try {
    return connection.send(key, command);
  } catch (error) {
    return Promise.reject(error);
  }
}

function epochOf(connection: RedisConnection): () => unknown {
  if (connection.resendEpoch !== undefined) return () => connection.resendEpoch?.();
  return () => connection.line?.();
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
