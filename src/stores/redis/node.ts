import { NotConnectedError, type RedisConnection } from "../../clients/contract.ts";
import { ReplicationError, type VoteKind } from "../../core/errors.ts";
import type { Emitter } from "../../core/events.ts";
import type { Instant, SteadyClock } from "../../core/ports.ts";
import { batchWeightMax, weightOf, type Batches } from "./batch.ts";
import { ClockWatch, stampOf, type DriftAllowance } from "./clock-watch.ts";
import { Introduction } from "./introduction.ts";
import type { NodeCall } from "./node-call.ts";
import { noLongerWanted, type NodeFailure } from "./node-reply.ts";
import { Outbox } from "./outbox.ts";
import { Probing } from "./probing.ts";
import { replicationFault } from "./replication-faults.ts";
import type { StampWatch } from "./stamp-watch.ts";
import { Sender, type Listener, type Outgoing } from "./sender.ts";

/** Beyond this a node is not answering, and more commands would only fill its client's memory. */
const inFlightMax = 20_000;

/** What has more keys than this goes alone. */
const partKeysMax = 4;

export interface NodeOptions {
  readonly clock: SteadyClock;
  readonly events: Emitter;
  readonly batches: Batches | undefined;
  readonly allowance: DriftAllowance;
  /** Silent for longer than this, a node is asked only now and then. */
  readonly silentMsMax: number;
  readonly onIntroduced: (node: RedisNode) => void;
  readonly onClockStep: (node: RedisNode, stepMs: number) => void;
  readonly stamps?: StampWatch;
  /** It lacks a script: perhaps it is another server than the one that was given it. */
  readonly onScriptMissing: (node: RedisNode) => void;
}

/** One server as the quorum sees it. */
export class RedisNode {
  readonly name: string;
  readonly connection: RedisConnection;
  readonly #events: Emitter;
  readonly #introduction: Introduction;
  readonly #clockWatch: ClockWatch;
  readonly #stamps: StampWatch | undefined;
  readonly #onClockStep: (node: RedisNode, stepMs: number) => void;
  readonly #onScriptMissing: (node: RedisNode) => void;
  readonly #batches: Batches | undefined;
  readonly #outbox: Outbox<Outgoing<unknown>>;
  readonly #sender: Sender;
  readonly #probing = new Probing();
  readonly #silentMsMax: number;
  #disconnected = false;
  #failing = false;
  #lastFault: unknown;
  #clockEpoch = 0;
  #heardRunId: string | undefined;

  constructor(name: string, connection: RedisConnection, options: NodeOptions) {
    const { events, onIntroduced, clock } = options;
    this.name = name;
    this.connection = connection;
    this.#events = events;
    this.#clockWatch = new ClockWatch(clock, options.allowance);
    this.#stamps = options.stamps;
    this.#onClockStep = options.onClockStep;
    this.#onScriptMissing = options.onScriptMissing;
    this.#batches = options.batches;
    this.#silentMsMax = options.silentMsMax;
    this.#outbox = new Outbox(
      batchWeightMax,
      ({ call }) => weightOf(call.part),
      (items) => this.#flush(items),
    );
    this.#introduction = new Introduction(connection, () => onIntroduced(this));
    this.#sender = new Sender({
      connection,
      clock,
      mustVerify: () => this.#introduction.mustVerify,
      infoDenied: () => this.infoDenied,
      heard: (reply, sent) => this.#heard(reply, sent),
      failed: (cause) => this.#failed(cause),
    });
  }

  get runId(): string | undefined {
    return this.#introduction.runId;
  }

  /** Of the process that gave the last answer that tells it, cut; "-" where it does not know. */
  get heardRunId(): string | undefined {
    return this.#heardRunId;
  }

  get version(): string | undefined {
    return this.#introduction.version;
  }

  /** What is sent to it runs there in that order, also where the driver has to send it again. */
  get keepsOrder(): boolean {
    return this.connection.line !== undefined;
  }

  /** Changes with every step forward of its clock: votes of an earlier epoch are worth nothing. */
  get clockEpoch(): number {
    return this.#clockEpoch;
  }

  /** Its time at a moment of our monotonic clock; undefined before a reply carried it. */
  serverMsAt(monotonicMs: number): number | undefined {
    return this.#clockWatch.serverMsAt(monotonicMs);
  }

  get lastFault(): unknown {
    return this.#lastFault;
  }

  /** The server lets us not look at INFO: neither its version nor its restarts can be known. */
  get infoDenied(): boolean {
    return this.#introduction.denied;
  }

  /** Asks the server again which process it is. Rejects if it cannot be asked. */
  meet(): Promise<void> {
    return this.#introduction.ask();
  }

  /**
   * Sends `call` and tells `to` once, whenever the answer comes: how long to wait is the
   * round's business. Never tells before it returns. `index` is what the listener knows it by.
   */
  run<Reply>(call: NodeCall<Reply>, to: Listener<Reply>, index: number): void {
    if (this.#introduction.known) {
      this.#start({ call, to, index });
      return;
    }
    this.#introduction.ask().then(
      () => this.#start({ call, to, index }),
      (error: unknown) => to.settle(index, this.#failed(error)),
    );
  }

  /**
   * It does not answer, or is not connected, and it is not yet time to ask it again: a round that
   * has enough others does without it.
   */
  holdsBack(nowMs: number): boolean {
    const isSick = this.#disconnected || this.#sender.silentMs(nowMs) > this.#silentMsMax;
    return isSick && this.#probing.holdsBack(nowMs);
  }

  /** A round does without it, as others do answer: say so once per bout. */
  leaveAlone(nowMs: number): void {
    if (this.#failing) return;
    const silentMs = Math.round(this.#sender.silentMs(nowMs));
    this.#fault("unknown", new Error(`no answer for ${silentMs} ms`));
  }

  /** The round gave up waiting. Returns what that is worth, and reports it once per outage. */
  timedOut(error: Error): NodeFailure {
    if (this.#introduction.isConnecting) {
      this.#introduction.giveUpConnecting();
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

  /** What was collected in one turn: alone as it is, together as one call. */
  #flush(items: readonly Outgoing<unknown>[]): void {
    const [first] = items;
    if (first === undefined || this.#batches === undefined) return;
    if (items.length === 1) this.#sender.send(first);
    else this.#sender.sendBatch(this.#batches, items);
  }

  #heard(reply: unknown, sent: Instant): void {
    this.#disconnected = false;
    this.#probing.heard();
    if (this.#failing) {
      this.#failing = false;
      this.#events.emit("node-recovered", { node: this.name });
    }
    // Heard without a reply: the one way in which the sender tells of a script that is not there.
    if (reply === undefined) this.#onScriptMissing(this);
    const stamp = stampOf(reply);
    if (stamp === undefined) return;
    this.#heardRunId = stamp.runId;
    this.#introduction.noticeRunId(stamp.runId);
    // Before the reply itself counts: what it confirms was written after the step.
    const stepMs = this.#clockWatch.observe(stamp, sent);
    this.#stamps?.observe(this, stamp, this.#clockWatch);
    if (stepMs === 0) return;
    if (stepMs > 0) this.#clockEpoch += 1;
    this.#onClockStep(this, stepMs);
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
        // Nothing was written, as if it had never come: a release of it is still owed.
        return { kind: "unsent", error: refused };
      }
      // A script that is not there yet is no fault of the node's.
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
 * An error reply starts with a code in capitals and a space; what a driver says of its connection
 * does not, or carries a system error's code. Whatever is not clearly a reply counts as unknown.
 */
function isServerError(error: Error): boolean {
  return /^[A-Z]{2,}[A-Z0-9_]* /.test(error.message) && !("syscall" in error);
}
