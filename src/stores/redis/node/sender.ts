import type { RedisConnection } from "../../../clients/contract.ts";
import type { Operation } from "../commands/operation.ts";
import type { Lists } from "../commands/operation-call.ts";
import type { NodeCall } from "../commands/node-call.ts";
import { unexpected } from "../commands/refusals.ts";
import type { Health } from "./health.ts";
import { noInfo, noLongerWanted, unproven, type NodeReply } from "./node-reply.ts";

/** Receives replies; one object for the calls to all nodes. */
export interface Listener<Reply> {
  /**
   * Called before a delayed command is sent. False if its reply would be of no use: the node must
   * not grant then.
   */
  isWanted(): boolean;
  /** Called once for each node, with its reply or its failure. */
  settle(index: number, reply: NodeReply<Reply>): void;
}

/** A call to one node, and the listener for its reply. */
export interface Outgoing<Reply> {
  readonly call: NodeCall<Reply>;
  readonly to: Listener<Reply>;
  /** Index of the node in the listener's list. */
  readonly index: number;
}

/**
 * Given instead of the connection's epoch (see `#epoch`) for a call that may already have run. It
 * equals no epoch, so the reply counts as that of a second run.
 */
const sentBefore = Symbol("sent before");

/**
 * Sends calls, each by itself or several in one script call. If the server lacks the script, sends
 * its text.
 */
export class Sender {
  readonly #health: Health;
  /** Returns the connection's epoch, which changes when the driver may have sent commands again. */
  readonly #epoch: () => unknown;
  #sent = 0;
  #answered = 0;
  /**
   * Monotonic start of the silence: the last reply, or the first command sent while none was in
   * flight.
   */
  #quietSinceMs = 0;

  constructor(health: Health) {
    const { connection } = health;
    this.#health = health;
    this.#epoch = epochOf(connection);
  }

  /**
   * Number of commands sent after the last command that has a reply. A connection replies in order,
   * so the driver has lost all earlier commands without a reply.
   */
  get inFlight(): number {
    return this.#sent - this.#answered;
  }

  /** Time since the last reply, if a command is in flight; otherwise 0. */
  silentMs(nowMs: number): number {
    return this.inFlight > 0 ? nowMs - this.#quietSinceMs : 0;
  }

  send<Reply>(outgoing: Outgoing<Reply>): void {
    this.#send(outgoing, this.#epoch(), false);
  }

  /** Sends a call. `epoch` is the connection's epoch when the call was sent for the first time. */
  #send<Reply>(outgoing: Outgoing<Reply>, epoch: unknown, isRepeat: boolean): void {
    const { call, to, index } = outgoing;
    const health = this.#health;
    const sent = health.clock.now();
    const place = this.#depart(sent.monotonicMs);
    // perf (sequential): contains a copy of `#exchange`, which saves two closures per call.
    handOver(health.connection, call.key, call.first(health.mustVerify())).then(
      (reply) => {
        this.#answer(place);
        health.received(reply, sent);
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

  /**
   * Settles with a reply that may come from a second run of the call. If such a reply proves
   * nothing, sends the call once more.
   */
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

  /**
   * Sends the second command of the call (the text of the script), if the error allows one.
   * Otherwise settles as failed.
   */
  #sendWhole<Reply>(
    outgoing: Outgoing<Reply>,
    error: unknown,
    epoch: unknown,
    isRepeat: boolean,
  ): void {
    const { call, to, index } = outgoing;
    const settle = (reply: NodeReply<Reply>): void => to.settle(index, reply);
    const second = error instanceof Error ? call.fallback(error) : undefined;
    if (second === undefined) return settle(this.#health.failed(error));
    if (this.#health.infoDenied() && call.needsInfo === true) return settle(noInfo);
    // The node works: it only lacked the script, and the call had no effect.
    this.#health.received(undefined, this.#health.clock.now());
    if (!to.isWanted()) return settle(noLongerWanted);
    const onSecond = (reply: unknown): void => {
      const answer = read(call, reply, true);
      if (epoch === this.#epoch()) settle(answer);
      else this.#settleResent(outgoing, answer, isRepeat);
    };
    this.#exchange(call.key, second, onSecond, (cause) => settle(this.#health.failed(cause)));
  }

  /** Sends all items in one script call. Each item receives its own part of the reply. */
  sendList(lists: Lists, items: readonly Outgoing<unknown>[]): void {
    this.#sendList(lists, items, this.#epoch(), false);
  }

  #sendList(
    lists: Lists,
    items: readonly Outgoing<unknown>[],
    epoch: unknown,
    byText: boolean,
  ): void {
    const operations: Operation[] = [];
    for (const { call } of items) if (call.operation !== undefined) operations.push(call.operation);
    const list = lists.callOf(operations);
    const command = byText ? list.whole() : list.first(this.#health.mustVerify());
    const onReply = (reply: unknown): void => {
      const lines = typeof reply === "string" ? reply.split("\n") : [];
      const isFirstRun = epoch === this.#epoch();
      let place = 1;
      for (const item of items) {
        const { call, to, index } = item;
        const answer = readLine(call, lines[place], lines[0] ?? "");
        if (isFirstRun) to.settle(index, answer);
        else this.#settleResent(item, answer, false);
        place += 1;
      }
    };
    this.#exchange(list.key, command, onReply, (error) => {
      const failure = this.#health.failed(error);
      const isMissing = error instanceof Error && error.message.startsWith("NOSCRIPT");
      const mayLoad = isMissing && !(list.needsInfo && this.#health.infoDenied());
      if (failure.kind !== "error") {
        for (const { to, index } of items) to.settle(index, failure);
      } else if (mayLoad && !byText) {
        this.#health.received(undefined, this.#health.clock.now());
        this.#again(items, (wanted) => this.#sendList(lists, wanted, epoch, true));
      } else {
        // The server refused the whole list. Each item is sent alone, so that one item cannot fail
        // the others. Some items may already have run.
        this.#again(items, (wanted) => {
          for (const item of wanted) this.#send(item, sentBefore, false);
        });
      }
    });
  }

  /**
   * Sends the items whose replies are still of use. The locks of the others may have been released
   * since.
   */
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
    const sent = this.#health.clock.now();
    const place = this.#depart(sent.monotonicMs);
    handOver(this.#health.connection, key, command).then(
      (reply) => {
        this.#answer(place);
        this.#health.received(reply, sent);
        onReply(reply);
      },
      (error: unknown) => {
        this.#answer(place);
        onError(error);
      },
    );
  }

  /** Returns the sequence number of the command. */
  #depart(nowMs: number): number {
    if (this.#sent === this.#answered) this.#quietSinceMs = nowMs;
    this.#sent += 1;
    return this.#sent;
  }

  #answer(place: number): void {
    this.#answered = Math.max(this.#answered, place);
    this.#quietSinceMs = this.#health.clock.monotonicMs();
  }
}

/**
 * Sends a command. Turns a throw of the client into a rejection, so that the rest of the round goes
 * on.
 */
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

function readLine<Reply>(
  call: NodeCall<Reply>,
  line: string | undefined,
  stamp: string,
): NodeReply<Reply> {
  try {
    if (call.readLine === undefined) throw unexpected(line);
    return { kind: "reply", reply: call.readLine(line, stamp) };
  } catch (error) {
    return misunderstood(error);
  }
}

/** Returns the failure for a reply that cannot be parsed. It is no vote, even if the call ran. */
function misunderstood(error: unknown): NodeReply<never> {
  return { kind: "error", error: error instanceof Error ? error : new Error(String(error)) };
}
