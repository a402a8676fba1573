import { NotConnectedError, type RedisConnection } from "../../../clients/contract.ts";
import { ReplicationError, type VoteKind } from "../../../core/errors.ts";
import type { Emitter } from "../../../core/events.ts";
import type { Instant, SteadyClock } from "../../../core/ports.ts";
import { batchWeightMax, weightOf, type Batches } from "../batch.ts";
import { ClockWatch, stampOf, type DriftAllowance } from "./clock-watch.ts";
import { ServerIdentity } from "./server-identity.ts";
import type { NodeCall } from "../node-call.ts";
import { noLongerWanted, type NodeFailure } from "../node-reply.ts";
import { Outbox } from "./outbox.ts";
import { ProbeSchedule } from "./probe-schedule.ts";
import { replicationFault } from "../commands/replication-faults.ts";
import type { MixedAdmission } from "./mixed-admission.ts";
import type { ServerClocks } from "./server-clocks.ts";
import type { ServerInfo } from "./server-info.ts";
import { Sender, type Listener, type Outgoing } from "./sender.ts";

/** Limit. A node with so many open commands is not answering: more would only fill memory. */
const inFlightMax = 20_000;

/** Limit of keys for a call in a batch. Calls with more keys go alone. */
const partKeysMax = 4;

export interface NodeOptions {
  readonly clock: SteadyClock;
  readonly events: Emitter;
  readonly batches: Batches | undefined;
  readonly allowance: DriftAllowance;
  /** Time without a reply after which rounds skip the node, except for probes. */
  readonly silentMsMax: number;
  /** Compares the servers' clocks with ours. */
  readonly clocks?: ServerClocks;
  /** Given if this client has admission off. */
  readonly mixedAdmission?: MixedAdmission | undefined;
}

/** Notified of what replies show about a node's server. */
export interface NodeObserver {
  /** Called after the first INFO reply of a server, and when a later one names another process. */
  onIdentified?(node: RedisNode): void;
  /** Called with every INFO reply of a survey. */
  onInfo?(node: RedisNode, info: ServerInfo): void;
  /** Called when the server lacks a script: it may be another server than before. */
  onScriptMissing?(node: RedisNode): void;
  /** Called when the server's clock was set: forward if `stepMs` is positive. */
  onClockStep?(node: RedisNode, stepMs: number): void;
}

/** One server of a quorum. */
export class RedisNode {
  readonly name: string;
  readonly connection: RedisConnection;
  readonly #events: Emitter;
  readonly #identity: ServerIdentity;
  readonly #clockWatch: ClockWatch;
  readonly #clocks: ServerClocks | undefined;
  readonly #mixedAdmission: MixedAdmission | undefined;
  readonly #observers: NodeObserver[] = [];
  readonly #batches: Batches | undefined;
  readonly #outbox: Outbox<Outgoing<unknown>>;
  readonly #sender: Sender;
  readonly #probes = new ProbeSchedule();
  readonly #silentMsMax: number;
  #disconnected = false;
  #failing = false;
  #lastFault: unknown;
  #clockEpoch = 0;
  #lastRunId: string | undefined;

  constructor(name: string, connection: RedisConnection, options: NodeOptions) {
    const { events, clock } = options;
    this.name = name;
    this.connection = connection;
    this.#events = events;
    this.#clockWatch = new ClockWatch(clock, options.allowance);
    this.#clocks = options.clocks;
    this.#mixedAdmission = options.mixedAdmission;
    this.#batches = options.batches;
    this.#silentMsMax = options.silentMsMax;
    this.#outbox = new Outbox(
      batchWeightMax,
      ({ call }) => weightOf(call.part),
      (items) => this.#flush(items),
    );
    this.#identity = new ServerIdentity(connection, () => {
      for (const observer of this.#observers) observer.onIdentified?.(this);
    });
    this.#sender = new Sender({
      connection,
      clock,
      mustVerify: () => this.#identity.mustVerify,
      infoDenied: () => this.infoDenied,
      heard: (reply, sent) => this.#onReceived(reply, sent),
      failed: (cause) => this.#failed(cause),
    });
  }

  observe(observer: NodeObserver): void {
    this.#observers.push(observer);
  }

  /** Called when a survey has received the server's INFO. */
  reportInfo(info: ServerInfo): void {
    for (const observer of this.#observers) observer.onInfo?.(this, info);
  }

  get runId(): string | undefined {
    return this.#identity.runId;
  }

  /** First 12 characters of the run id in the last reply that had one; "-" if not checked. */
  get lastRunId(): string | undefined {
    return this.#lastRunId;
  }

  get version(): string | undefined {
    return this.#identity.version;
  }

  /**
   * True if commands run in the order in which they were sent, even if the driver sends them again.
   */
  get keepsOrder(): boolean {
    return this.connection.line !== undefined;
  }

  /** Counts the forward steps of the server's clock: votes of an earlier epoch do not count. */
  get clockEpoch(): number {
    return this.#clockEpoch;
  }

  /**
   * Returns the server's time at a monotonic time; undefined before the first reply that has one.
   */
  serverMsAt(monotonicMs: number): number | undefined {
    return this.#clockWatch.serverMsAt(monotonicMs);
  }

  get lastFault(): unknown {
    return this.#lastFault;
  }

  /** True if this user may not run INFO: the server's version and restarts are then unknown. */
  get infoDenied(): boolean {
    return this.#identity.denied;
  }

  /** Sends INFO to learn which process answers. Rejects if there is no usable reply. */
  identify(): Promise<void> {
    return this.#identity.identify();
  }

  /**
   * Sends `call` and settles `to` once, whenever the reply arrives: the round limits the wait.
   * Never settles before it returns. `index` is the index of this node in the listener's list.
   */
  run<Reply>(call: NodeCall<Reply>, to: Listener<Reply>, index: number): void {
    if (this.#identity.known) {
      this.#start({ call, to, index });
      return;
    }
    this.#identity.identify().then(
      () => this.#start({ call, to, index }),
      (error: unknown) => to.settle(index, this.#failed(error)),
    );
  }

  /** True if a round should skip this silent or disconnected node, because no probe is due. */
  shouldSkip(nowMs: number): boolean {
    const isSick = this.#disconnected || this.#sender.silentMs(nowMs) > this.#silentMsMax;
    return isSick && this.#probes.shouldSkip(nowMs);
  }

  /** Called when a round skips the node. Reports the fault once per outage. */
  reportSkipped(nowMs: number): void {
    if (this.#failing) return;
    const silentMs = Math.round(this.#sender.silentMs(nowMs));
    this.#fault("unknown", new Error(`no answer for ${silentMs} ms`));
  }

  /** Called when a round stops waiting. Returns the failure, and reports it once per outage. */
  timedOut(error: Error): NodeFailure {
    if (this.#identity.isConnecting) {
      this.#identity.giveUpConnecting();
      return this.#failed(new NotConnectedError(this.connection.library, "connecting"));
    }
    this.#fault("unknown", error);
    return { kind: "unknown", error, timedOut: true };
  }

  #start<Reply>(outgoing: Outgoing<Reply>): void {
    const { call, to, index } = outgoing;
    if (!to.isWanted()) {
      void Promise.resolve().then(() => to.settle(index, noLongerWanted));
    } else if (this.#sender.inFlight >= inFlightMax) {
      const error = new Error(`${inFlightMax} commands are in flight, unanswered`);
      void Promise.resolve().then(() => to.settle(index, { kind: "unsent", error }));
    } else if (this.#batches === undefined || !canBatch(call)) {
      this.#sender.send(outgoing);
    } else {
      this.#outbox.add(outgoing);
    }
  }

  /** Sends what was collected in one turn: one call as it is, several as a batch. */
  #flush(items: readonly Outgoing<unknown>[]): void {
    const [first] = items;
    if (first === undefined || this.#batches === undefined) return;
    if (items.length === 1) this.#sender.send(first);
    else this.#sender.sendBatch(this.#batches, items);
  }

  #onReceived(reply: unknown, sent: Instant): void {
    this.#disconnected = false;
    this.#probes.succeeded();
    if (this.#failing) {
      this.#failing = false;
      this.#events.emit("node-recovered", { node: this.name });
    }
    // Without a reply: in this way the sender reports a missing script.
    if (reply === undefined) {
      for (const observer of this.#observers) observer.onScriptMissing?.(this);
    }
    const stamp = stampOf(reply);
    if (stamp === undefined) return;
    this.#lastRunId = stamp.runId;
    this.#identity.noticeRunId(stamp.runId);
    // Before the reply is counted: what it confirms was written after the step.
    const stepMs = this.#clockWatch.observe(stamp, sent);
    this.#clocks?.observe(this, this.#clockWatch);
    if (stamp.runId !== "-") this.#mixedAdmission?.onStrictRecord(this);
    if (stepMs === 0) return;
    if (stepMs > 0) this.#clockEpoch += 1;
    for (const observer of this.#observers) observer.onClockStep?.(this, stepMs);
  }

  #failed(cause: unknown): NodeFailure {
    const error = cause instanceof Error ? cause : new Error(String(cause));
    if (error instanceof NotConnectedError || error.name === "NotConnectedError") {
      this.#fault("failed", error);
      this.#disconnected = true;
      return { kind: "unsent", error };
    }
    if (error instanceof ReplicationError) {
      this.#fault("failed", error);
      return { kind: "error", error };
    }
    if (isServerError(error)) {
      const refused = replicationFault(error);
      if (refused !== undefined) {
        this.#fault("failed", refused);
        // Nothing was written, so the call counts as unsent: a release is still owed.
        return { kind: "unsent", error: refused };
      }
      // A missing script is no fault of the node.
      if (!error.message.startsWith("NOSCRIPT")) this.#fault("failed", error);
      return { kind: "error", error };
    }
    this.#fault("unknown", error);
    return { kind: "unknown", error, timedOut: false };
  }

  #fault(vote: VoteKind, cause: Error): void {
    this.#lastFault = cause;
    if (this.#failing) return;
    this.#failing = true;
    this.#events.emit("node-failed", { node: this.name, vote, cause });
  }
}

function canBatch({ part }: NodeCall<unknown>): boolean {
  return part !== undefined && part.keys.length <= partKeysMax;
}

/**
 * True if the error is a reply of the server: it starts with a code in capitals and a space. Errors
 * of a driver do not, or they carry a system error's code. If in doubt, the outcome is unknown.
 */
function isServerError(error: Error): boolean {
  return /^[A-Z]{2,}[A-Z0-9_]* /.test(error.message) && !("syscall" in error);
}
