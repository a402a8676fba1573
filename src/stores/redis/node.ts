import { NotConnectedError, type RedisConnection } from "../../clients/contract.ts";
import type { VoteKind } from "../../core/errors.ts";
import type { Emitter } from "../../core/events.ts";
import { batchCall, batchKeysMax, batchSizeMax, type Batching } from "./batch.ts";
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
  readonly #onIntroduced: (node: RedisNode) => void;
  readonly #batching: Batching | undefined;
  readonly #outbox: Outbox<Outgoing<unknown>>;
  #inFlight = 0;
  #introduction: Promise<void> | undefined;
  #introduced = false;
  #failing = false;
  #runId: string | undefined;
  #version: string | undefined;
  #lastFault: unknown;
  #infoDenied = false;

  constructor(
    name: string,
    connection: RedisConnection,
    events: Emitter,
    options: { onIntroduced: (node: RedisNode) => void; batching: Batching | undefined },
  ) {
    this.#onIntroduced = options.onIntroduced;
    this.#batching = options.batching;
    this.#outbox = new Outbox(batchSizeMax, (items) => this.#flush(items));
    this.name = name;
    this.connection = connection;
    this.#events = events;
  }

  get runId(): string | undefined {
    return this.#runId;
  }

  get version(): string | undefined {
    return this.#version;
  }

  get lastFault(): unknown {
    return this.#lastFault;
  }

  /** The server lets us not look at INFO: neither its version nor its restarts can be known. */
  get infoDenied(): boolean {
    return this.#infoDenied;
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
    if (this.#introduced) {
      this.#start(call, wanted, settle);
      return;
    }
    this.#introduction ??= this.#introduce();
    this.#introduction.then(
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
      for (const [index, item] of items.entries()) item.settle(partOf(item.call, reply, index));
    });
  }

  #send<Reply>(
    call: NodeCall<Reply>,
    wanted: () => boolean,
    settle: (reply: NodeReply<Reply>) => void,
  ): void {
    this.#inFlight += 1;
    this.connection.send(call.key, call.first(this.#mustVerify)).then(
      (reply) => {
        this.#inFlight -= 1;
        settle(this.#answered(call, reply, false));
      },
      (error: unknown) => {
        this.#inFlight -= 1;
        const second = error instanceof Error ? call.fallback(error) : undefined;
        if (second === undefined) settle(this.#failed(error));
        else if (this.#infoDenied && call.needsInfo === true) settle(noInfo);
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
    this.connection.send(call.key, command).then(
      (reply) => {
        this.#inFlight -= 1;
        settle(this.#answered(call, reply, true));
      },
      (error: unknown) => {
        this.#inFlight -= 1;
        settle(this.#failed(error));
      },
    );
  }

  /** Servers before 7 may carry scripts in their RDB: there, a cached script proves nothing. */
  get #mustVerify(): boolean {
    if (this.#infoDenied) return false;
    return this.#version === undefined || Number.parseInt(this.#version, 10) < 7;
  }

  #answered<Reply>(call: NodeCall<Reply>, reply: unknown, byFallback: boolean): NodeReply<Reply> {
    this.#heard();
    try {
      return { kind: "reply", reply: call.read(reply, byFallback) };
    } catch (error) {
      // It answered, in a way we do not understand: applied or not, it is no vote for us.
      const told = error instanceof Error ? error : new Error(String(error));
      return { kind: "error", error: told };
    }
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

  /** Before the first command: which process is this, and of which version? */
  async #introduce(): Promise<void> {
    try {
      if (this.connection.topology === "standalone") {
        const info = await this.connection.send("", ["INFO", "server"]);
        this.#runId = /run_id:(\w+)/.exec(String(info))?.[1];
        this.#version = /redis_version:(\S+)/.exec(String(info))?.[1];
      }
      this.#introduced = true;
      this.#onIntroduced(this);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith("NOPERM")) {
        this.#introduction = undefined;
        throw error;
      }
      this.#infoDenied = true;
      this.#introduced = true;
      this.#events.emit("warning", {
        what: `${this.name}: this user may not run INFO`,
        why: "the same server given twice, its version and its restarts cannot be told",
        remedy: "allow it: ACL SETUSER <user> +info",
      });
    }
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
