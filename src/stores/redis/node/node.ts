import type { RedisConnection } from "../../../clients/contract.ts";
import type { Emitter } from "../../../core/events.ts";
import type { SteadyClock } from "../../../core/ports.ts";
import type { Lists } from "../commands/operation-call.ts";
import type { NodeCall } from "../commands/node-call.ts";
import type { Operation } from "../commands/operation.ts";
import type { DriftAllowance } from "../../../core/time/clock-watch.ts";
import { Health } from "./health.ts";
import type { MixedAdmission } from "./mixed-admission.ts";
import { noLongerWanted } from "./node-reply.ts";
import { Sender, type Listener, type Outgoing } from "./sender.ts";
import type { ServerClocks } from "./server-clocks.ts";
import type { ServerInfo } from "./server-info.ts";

/**
 * Limit of commands without a reply. A node with so many does not reply, and more commands would
 * only fill memory.
 */
const inFlightMax = 20_000;

export interface NodeOptions {
  readonly clock: SteadyClock;
  readonly events: Emitter;
  /** Makes script calls with several operations. Undefined if a call can have only one. */
  readonly lists: Lists | undefined;
  readonly allowance: DriftAllowance;
  /** Time without a reply after which rounds skip the node, except for probes. */
  readonly silentMsMax: number;
  /** Compares the servers' clocks with ours. */
  readonly clocks?: ServerClocks;
  /**
   * Warns of nodes whose record belongs to admission "strict". Set if this client has admission
   * off.
   */
  readonly mixedAdmission?: MixedAdmission | undefined;
}

/** Receives what replies show about a node's server. */
export interface NodeObserver {
  /**
   * Called after the first INFO reply of a server, and after one with the run id of another
   * process.
   */
  onIdentified?(node: RedisNode): void;
  /** Called with every INFO reply of a survey. */
  onInfo?(node: RedisNode, info: ServerInfo): void;
  /** Called when the server lacks a script: the node may have another server than before. */
  onScriptMissing?(node: RedisNode): void;
  /** Called when the server's clock was set: forward if `stepMs` is positive. */
  onClockStep?(node: RedisNode, stepMs: number): void;
}

/** One server of a quorum. */
export class RedisNode {
  readonly name: string;
  readonly connection: RedisConnection;
  readonly health: Health;
  readonly #sender: Sender;
  readonly #outbox: Outbox | undefined;
  readonly #silentMsMax: number;

  constructor(name: string, connection: RedisConnection, options: NodeOptions) {
    this.name = name;
    this.connection = connection;
    this.health = new Health(this, connection, options);
    this.#sender = new Sender(this.health);
    this.#outbox = options.lists && new Outbox(this.#sender, options.lists);
    this.#silentMsMax = options.silentMsMax;
  }

  observe(observer: NodeObserver): void {
    this.health.observers.push(observer);
  }

  /** Called when a survey has received the server's INFO. */
  reportInfo(info: ServerInfo): void {
    for (const observer of this.health.observers) observer.onInfo?.(this, info);
  }

  get runId(): string | undefined {
    return this.health.identity.runId;
  }

  get version(): string | undefined {
    return this.health.identity.version;
  }

  /** True if this user may not run INFO: the server's version and restarts are then unknown. */
  get infoDenied(): boolean {
    return this.health.identity.denied;
  }

  /**
   * True if commands run in the order in which they were sent, even if the driver sends them again.
   */
  get keepsOrder(): boolean {
    return this.connection.line !== undefined;
  }

  /** Sends INFO to get the run id of the server. Rejects if there is no usable reply. */
  identify(): Promise<void> {
    return this.health.identity.identify();
  }

  /**
   * Sends `call`, and calls `to.settle` once, however late the reply arrives: the round limits the
   * wait. Never calls it before `run` has returned. `index` is the index of this node in the
   * listener's list.
   */
  run<Reply>(call: NodeCall<Reply>, to: Listener<Reply>, index: number): void {
    const { health } = this;
    if (health.identity.known) {
      this.#start({ call, to, index });
      return;
    }
    health.identity.identify().then(
      () => this.#start({ call, to, index }),
      (error: unknown) => to.settle(index, health.failed(error)),
    );
  }

  /**
   * True if a round should skip the silent or disconnected node for now. If false, the caller must
   * send its request: it tests whether the node works again.
   */
  shouldSkip(nowMs: number): boolean {
    const { health } = this;
    const isSick = health.isDisconnected || this.#sender.silentMs(nowMs) > this.#silentMsMax;
    return isSick && health.shouldSkip(nowMs);
  }

  /** Called when a round skips the node. Reports the fault once per outage. */
  reportSkipped(nowMs: number): void {
    this.health.reportSkipped(this.#sender.silentMs(nowMs));
  }

  #start<Reply>(outgoing: Outgoing<Reply>): void {
    const { call, to, index } = outgoing;
    if (!to.isWanted()) {
      void Promise.resolve().then(() => to.settle(index, noLongerWanted));
    } else if (this.#sender.inFlight >= inFlightMax) {
      const error = new Error(`${inFlightMax} commands are in flight, unanswered`);
      void Promise.resolve().then(() => to.settle(index, { kind: "unsent", error }));
    } else if (this.#outbox === undefined || !canBeListed(call)) {
      this.#sender.send(outgoing);
    } else {
      this.#outbox.add(outgoing);
    }
  }
}

const turn = Promise.resolve();

/**
 * Limit for the operations in one script call, as the sum of their weights (`weightOf`). A longer
 * call delays the commands of every other client of the server.
 */
const listWeightMax = 128;
/** Weight of an acquire or a release with up to four keys. */
const usualWeight = 4;
const touchWeight = 2;

/**
 * Limit for the keys of an operation that shares a script call. With more keys, it is sent alone.
 */
const listedKeysMax = 4;

/** True if the call may share a script call with others. */
function canBeListed({ operation }: NodeCall<unknown>): boolean {
  return operation !== undefined && operation.keys.length <= listedKeysMax;
}

/**
 * Returns the part of `listWeightMax` that an operation uses up: renewals, which are frequent, use
 * the least.
 */
function weightOf(operation: Operation | undefined): number {
  if (operation === undefined) return Infinity;
  const { kind, keys } = operation;
  return kind === "touch" ? touchWeight * keys.length : Math.max(usualWeight, keys.length);
}

/**
 * perf (inflight): collects the calls to one node in one turn of the event loop, and sends many of
 * them in one script call. A full one is sent at once, so that the server works while we encode the
 * next. The rest is sent after the continuations of the turn.
 */
class Outbox {
  readonly #sender: Sender;
  readonly #lists: Lists;
  #items: Outgoing<unknown>[] = [];
  #weight = 0;
  #scheduled = false;
  readonly #onTurn = (): void => {
    this.#scheduled = false;
    this.#flush();
  };

  constructor(sender: Sender, lists: Lists) {
    this.#sender = sender;
    this.#lists = lists;
  }

  add(item: Outgoing<unknown>): void {
    const weight = weightOf(item.call.operation);
    if (this.#weight + weight > listWeightMax) this.#flush();
    this.#items.push(item);
    this.#weight += weight;
    if (this.#weight >= listWeightMax) {
      this.#flush();
    } else if (!this.#scheduled) {
      this.#scheduled = true;
      // A microtask runs after all continuations that one reply started. perf (inflight):
      // queueMicrotask is not used, because in Node.js it makes a resource for each call and costs
      // three times as much.
      void turn.then(this.#onTurn);
    }
  }

  /** Sends the collected calls: a single one by itself, several in one script call. */
  #flush(): void {
    const items = this.#items;
    const [first] = items;
    if (first === undefined) return;
    this.#items = [];
    this.#weight = 0;
    if (items.length === 1) this.#sender.send(first);
    else this.#sender.sendList(this.#lists, items);
  }
}
