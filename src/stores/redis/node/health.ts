/**
 * Health of one server, as its replies and failures show it.
 *
 * Problem: a request that failed was not sent, was refused, or may have run. Only a request that
 * may have run may have set a key. A reply may also come from another process than the last reply,
 * or from a server whose clock was set.
 *
 * Idea: every reply and every failure of a node passes through this class before it counts. A reply
 * ends an outage, and contains the process and the time of its clock. A failure is classified, and
 * reported once per outage. During an outage the node receives only probes, at growing pauses.
 *
 * Limits: a change at the server between two replies is noticed at the second reply.
 */

import { NotConnectedError, type RedisConnection } from "../../../clients/contract.ts";
import { ReplicationError, type VoteKind } from "../../../core/errors.ts";
import type { Emitter } from "../../../core/events.ts";
import type { Instant, SteadyClock } from "../../../core/ports.ts";
import { replicationFault } from "../commands/replication-faults.ts";
import type { NodeFailure } from "./node-reply.ts";
import { ClockWatch } from "../../../core/time/clock-watch.ts";
import { stampOf } from "./stamp.ts";
import type { MixedAdmission } from "./mixed-admission.ts";
import type { NodeObserver, NodeOptions, RedisNode } from "./node.ts";
import type { ServerClocks } from "./server-clocks.ts";
import { ServerIdentity } from "./server-identity.ts";

export class Health {
  readonly connection: RedisConnection;
  readonly clock: SteadyClock;
  readonly identity: ServerIdentity;
  readonly observers: NodeObserver[] = [];
  /**
   * Number of forward steps of the server's clock. Votes given before the last step do not count.
   */
  clockEpoch = 0;
  /**
   * First 12 characters of the run id in the last reply that had one; "-" if the script did not
   * check it.
   */
  lastRunId: string | undefined = undefined;
  lastFault: unknown = undefined;
  isDisconnected = false;
  readonly #node: RedisNode;
  readonly #events: Emitter;
  readonly #clockWatch: ClockWatch;
  readonly #clocks: ServerClocks | undefined;
  readonly #mixedAdmission: MixedAdmission | undefined;
  readonly #probes = new ProbeSchedule();
  #failing = false;

  constructor(node: RedisNode, connection: RedisConnection, options: NodeOptions) {
    this.connection = connection;
    this.clock = options.clock;
    this.identity = new ServerIdentity(connection, () => {
      for (const observer of this.observers) observer.onIdentified?.(node);
    });
    this.#node = node;
    this.#events = options.events;
    this.#clockWatch = new ClockWatch(options.clock, options.allowance);
    this.#clocks = options.clocks;
    this.#mixedAdmission = options.mixedAdmission;
  }

  mustVerify(): boolean {
    return this.identity.mustVerify;
  }

  infoDenied(): boolean {
    return this.identity.denied;
  }

  /**
   * Returns the server's time at a monotonic time; undefined before the first reply that has one.
   */
  serverMsAt(monotonicMs: number): number | undefined {
    return this.#clockWatch.serverMsAt(monotonicMs);
  }

  /**
   * True if a round should skip the silent or disconnected node for now. If false, the caller must
   * send its request: it tests whether the node works again.
   */
  shouldSkip(nowMs: number): boolean {
    return this.#probes.shouldSkip(nowMs);
  }

  /** Called when a round skips the node. */
  reportSkipped(silentMs: number): void {
    if (this.#failing) return;
    this.#report("unknown", new Error(`no answer for ${Math.round(silentMs)} ms`));
  }

  /** Called when a round stops waiting for a reply of the node. Returns the failure. */
  timedOut(error: Error): NodeFailure {
    if (this.identity.isConnecting) {
      this.identity.giveUpConnecting();
      return this.failed(new NotConnectedError(this.connection.library, "connecting"));
    }
    this.#report("unknown", error);
    return { kind: "unknown", error, timedOut: true };
  }

  /** Called with every reply, or with undefined if the server replied that it lacks the script. */
  received(reply: unknown, sent: Instant): void {
    this.isDisconnected = false;
    this.#probes.succeeded();
    if (this.#failing) {
      this.#failing = false;
      this.#events.emit("node-recovered", { node: this.#node.name });
    }
    if (reply === undefined) {
      for (const observer of this.observers) observer.onScriptMissing?.(this.#node);
    }
    const stamp = stampOf(reply);
    if (stamp === undefined) return;
    this.lastRunId = stamp.runId;
    this.identity.noticeRunId(stamp.runId);
    // Records a step of the server's clock before the reply counts as a vote: the write that the
    // reply confirms came after the step, so its vote stays.
    const stepMs = this.#clockWatch.observe(stamp, sent);
    if (this.#clockWatch.hasNews) this.#clocks?.observe(this.#node, this.#clockWatch);
    if (stamp.runId !== "-") this.#mixedAdmission?.onStrictRecord(this.#node);
    if (stepMs === 0) return;
    if (stepMs > 0) this.clockEpoch += 1;
    for (const observer of this.observers) observer.onClockStep?.(this.#node, stepMs);
  }

  /**
   * Called with every error. Returns whether the request was not sent, was refused, or may have
   * run.
   */
  failed(cause: unknown): NodeFailure {
    const error = cause instanceof Error ? cause : new Error(String(cause));
    if (error instanceof NotConnectedError || error.name === "NotConnectedError") {
      this.#report("failed", error);
      this.isDisconnected = true;
      return { kind: "unsent", error };
    }
    if (error instanceof ReplicationError) {
      this.#report("failed", error);
      return { kind: "error", error };
    }
    if (isServerError(error)) {
      const refused = replicationFault(error);
      if (refused !== undefined) {
        this.#report("failed", refused);
        // Nothing was written, so the call counts as unsent. A release has to be sent again.
        return { kind: "unsent", error: refused };
      }
      // A missing script is no fault of the node.
      if (!error.message.startsWith("NOSCRIPT")) this.#report("failed", error);
      return { kind: "error", error };
    }
    this.#report("unknown", error);
    return { kind: "unknown", error, timedOut: false };
  }

  /** Records the fault, and emits it once per outage. */
  #report(vote: VoteKind, cause: Error): void {
    this.lastFault = cause;
    if (this.#failing) return;
    this.#failing = true;
    this.#events.emit("node-failed", { node: this.#node.name, vote, cause });
  }
}

/**
 * True if the error is a reply of the server: it starts with a code in capitals and a space. An
 * error of a driver has no such code, or has the property `syscall`. If in doubt, the outcome is
 * unknown.
 */
function isServerError(error: Error): boolean {
  return /^[A-Z]{2,}[A-Z0-9_]* /.test(error.message) && !("syscall" in error);
}

const firstPauseMs = 50;
const pauseMsMax = 1_000;

/**
 * Decides when a silent or disconnected node receives a request as a probe: at growing pauses,
 * until the node replies. The next request of any round serves as the probe.
 */
class ProbeSchedule {
  #pauseMs = firstPauseMs;
  #nextMs = -Infinity;

  /**
   * True if a round should skip the node now. If false, the caller must send its request: it is the
   * probe.
   */
  shouldSkip(nowMs: number): boolean {
    if (nowMs < this.#nextMs) return true;
    this.#nextMs = nowMs + this.#pauseMs;
    this.#pauseMs = Math.min(pauseMsMax, this.#pauseMs * 2);
    return false;
  }

  succeeded(): void {
    this.#pauseMs = firstPauseMs;
    this.#nextMs = -Infinity;
  }
}
