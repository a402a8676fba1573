import { NotConnectedError, type RedisConnection } from "../../clients/contract.ts";
import type { VoteKind } from "../../core/errors.ts";
import type { Emitter } from "../../core/events.ts";
import type { Clock, Instant } from "../../core/ports.ts";
import { now } from "../../core/validity.ts";
import { batchCall, batchKeysMax, batchSizeMax, type Batching } from "./batch.ts";
import { ClockWatch, stampOf, type DriftAllowance } from "./clock-watch.ts";
import { Introduction } from "./introduction.ts";
import type { NodeCall } from "./node-call.ts";
import { Outbox } from "./outbox.ts";
import { refusal } from "./replies.ts";

/** How a node answered one call, in what it means for the protocol. */
export type NodeReply<Reply> =
  | { readonly kind: "reply"; readonly reply: Reply }
  /** The server refused. */
  | { readonly kind: "error"; readonly error: Error }
  /** Certainly not sent, so certainly not applied. */
  | { readonly kind: "unsent"; readonly error: Error }
  /** Sent, and never answered: applied or not, nobody knows. */
  | { readonly kind: "unknown"; readonly error: Error; readonly timedOut: boolean };

/** Beyond this a node is not answering, and more commands would only fill its client's memory. */
const inFlightMax = 20_000;

export interface NodeOptions {
  readonly clock: Clock;
  readonly events: Emitter;
  readonly batching: Batching | undefined;
  readonly allowance: DriftAllowance;
  readonly onIntroduced: (node: RedisNode) => void;
  readonly onClockStep: (node: RedisNode, stepMs: number) => void;
}

interface Asked<Reply> {
  readonly call: NodeCall<Reply>;
  readonly sent: Instant;
  readonly byFallback: boolean;
}

interface Outgoing<Reply> {
  readonly call: NodeCall<Reply>;
  readonly wanted: () => boolean;
  readonly settle: (reply: NodeReply<Reply>) => void;
}

const noInfo = { kind: "error", error: refusal(["X", "NOINFO"]) } as const;

/** One server as the quorum sees it. */
export class RedisNode {
  readonly name: string;
  readonly connection: RedisConnection;
  readonly #events: Emitter;
  readonly #introduction: Introduction;
  readonly #clock: Clock;
  readonly #clockWatch: ClockWatch;
  readonly #onClockStep: (node: RedisNode, stepMs: number) => void;
  readonly #batching: Batching | undefined;
  readonly #outbox: Outbox<Outgoing<unknown>>;
  #inFlight = 0;
  #failing = false;
  #lastFault: unknown;
  #clockEpoch = 0;

  constructor(name: string, connection: RedisConnection, options: NodeOptions) {
    const { events, onIntroduced, clock } = options;
    this.name = name;
    this.connection = connection;
    this.#events = events;
    this.#clock = clock;
    this.#clockWatch = new ClockWatch(clock, options.allowance);
    this.#onClockStep = options.onClockStep;
    this.#batching = options.batching;
    this.#outbox = new Outbox(batchSizeMax, (items) => this.#flush(items));
    this.#introduction = new Introduction(connection, () => onIntroduced(this));
  }

  get runId(): string | undefined {
    return this.#introduction.runId;
  }

  get version(): string | undefined {
    return this.#introduction.version;
  }

  /** Changes with every step forward of its clock: votes of an earlier epoch are worth nothing. */
  get clockEpoch(): number {
    return this.#clockEpoch;
  }

  get lastFault(): unknown {
    return this.#lastFault;
  }

  /** The server lets us not look at INFO: neither its version nor its restarts can be known. */
  get infoDenied(): boolean {
    return this.#introduction.denied;
  }

  /**
   * Sends `call` and tells `settle` once, whenever the answer comes: how long to wait is the
   * round's business. Never tells before it returns. `wanted` is asked again before anything is
   * sent late.
   */
  run<Reply>(
    call: NodeCall<Reply>,
    wanted: () => boolean,
    settle: (reply: NodeReply<Reply>) => void,
  ): void {
    if (this.#introduction.known) {
      this.#start(call, wanted, settle);
      return;
    }
    this.#introduction.ask().then(
      () => this.#start(call, wanted, settle),
      (error: unknown) => settle(this.#failed(error)),
    );
  }

  /** The round gave up waiting: say so once per bout. */
  timedOut(error: Error): void {
    this.#fault("unknown", error);
  }

  #start<Reply>(
    call: NodeCall<Reply>,
    wanted: () => boolean,
    settle: (reply: NodeReply<Reply>) => void,
  ): void {
    if (this.#inFlight >= inFlightMax || !wanted()) {
      const error = new Error(
        wanted() ? `${inFlightMax} commands are in flight, unanswered` : "no longer wanted",
      );
      queueMicrotask(() => settle({ kind: "unsent", error }));
    } else if (this.#batching === undefined || !canBatch(call)) {
      this.#send(call, wanted, settle);
    } else {
      this.#outbox.add({ call, wanted, settle } as unknown as Outgoing<unknown>);
    }
  }

  /** What was collected in one turn: alone as it is, together as one call. */
  #flush(items: readonly Outgoing<unknown>[]): void {
    const [first] = items;
    if (first === undefined || this.#batching === undefined) return;
    if (items.length === 1) return this.#send(first.call, first.wanted, first.settle);
    const parts = items.flatMap(({ call }) => call.part ?? []);
    const call = batchCall(this.#batching, parts);
    const wanted = (): boolean => items.some((item) => item.wanted());
    this.#send(call, wanted, (reply) => {
      for (const [index, item] of items.entries()) {
        // The server refused the whole: each on its own, so that one cannot fail the others.
        if (reply.kind === "error") this.#send(item.call, item.wanted, item.settle);
        else item.settle(partOf(item.call, reply, index));
      }
    });
  }

  #send<Reply>(
    call: NodeCall<Reply>,
    wanted: () => boolean,
    settle: (reply: NodeReply<Reply>) => void,
  ): void {
    this.#inFlight += 1;
    const sent = now(this.#clock);
    this.connection.send(call.key, call.first(this.#mustVerify)).then(
      (reply) => {
        this.#inFlight -= 1;
        settle(this.#answered({ call, sent, byFallback: false }, reply));
      },
      (error: unknown) => {
        this.#inFlight -= 1;
        const second = error instanceof Error ? call.fallback(error) : undefined;
        if (second === undefined) settle(this.#failed(error));
        else if (this.infoDenied && call.needsInfo === true) settle(noInfo);
        else if (wanted()) this.#sendFallback(call, second, settle);
        else {
          // The node is well: it only lacked the script, so nothing was applied.
          this.#heard();
          settle({ kind: "unsent", error: new Error("no longer wanted") });
        }
      },
    );
  }

  #sendFallback<Reply>(
    call: NodeCall<Reply>,
    command: readonly string[],
    settle: (reply: NodeReply<Reply>) => void,
  ): void {
    this.#inFlight += 1;
    const sent = now(this.#clock);
    this.connection.send(call.key, command).then(
      (reply) => {
        this.#inFlight -= 1;
        settle(this.#answered({ call, sent, byFallback: true }, reply));
      },
      (error: unknown) => {
        this.#inFlight -= 1;
        settle(this.#failed(error));
      },
    );
  }

  /** Servers before 7 may carry scripts in their RDB: there, a cached script proves nothing. */
  get #mustVerify(): boolean {
    if (this.infoDenied) return false;
    return this.version === undefined || Number.parseInt(this.version, 10) < 7;
  }

  #answered<Reply>(asked: Asked<Reply>, reply: unknown): NodeReply<Reply> {
    this.#heard();
    this.#watchClock(reply, asked.sent);
    try {
      return { kind: "reply", reply: asked.call.read(reply, asked.byFallback) };
    } catch (error) {
      // It answered, in a way we do not understand: applied or not, it is no vote for us.
      const told = error instanceof Error ? error : new Error(String(error));
      return { kind: "error", error: told };
    }
  }

  /** Before the reply itself counts: what it confirms was written after the step. */
  #watchClock(reply: unknown, sent: Instant): void {
    const stamp = stampOf(reply);
    if (stamp === undefined) return;
    this.#introduction.noticeRunId(stamp.runId);
    const stepMs = this.#clockWatch.observe(stamp, sent);
    if (stepMs === 0) return;
    if (stepMs > 0) this.#clockEpoch += 1;
    this.#onClockStep(this, stepMs);
  }

  #heard(): void {
    if (!this.#failing) return;
    this.#failing = false;
    this.#events.emit("node-recovered", { node: this.name });
  }

  #failed<Reply>(cause: unknown): NodeReply<Reply> {
    const error = cause instanceof Error ? cause : new Error(String(cause));
    if (error instanceof NotConnectedError || error.name === "NotConnectedError") {
      this.#fault("failed", error);
      return { kind: "unsent", error };
    }
    if (isServerError(error)) {
      this.#fault("failed", error);
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

function canBatch(call: NodeCall<unknown>): boolean {
  return call.part !== undefined && call.part.keys.length <= batchKeysMax / batchSizeMax;
}

function partOf<Reply>(
  call: NodeCall<Reply>,
  reply: NodeReply<readonly unknown[]>,
  index: number,
): NodeReply<Reply> {
  if (reply.kind !== "reply") return reply;
  try {
    const read = call.readPart?.(reply.reply[index]);
    if (read !== undefined) return { kind: "reply", reply: read };
    return { kind: "error", error: new Error("this call is not part of a batch") };
  } catch (error) {
    return { kind: "error", error: error instanceof Error ? error : new Error(String(error)) };
  }
}

/**
 * An error reply starts with a code in capitals and a space; what a driver says of its connection
 * does not, or carries a system error's code. Whatever is not clearly a reply counts as unknown.
 */
function isServerError(error: Error): boolean {
  return /^[A-Z]{2,}[A-Z0-9_]* /.test(error.message) && !("syscall" in error);
}
