import {
  linesOf,
  readAcquire,
  readInspect,
  readRelease,
  readSet,
  readTouch,
  readTouches,
  releaseAfterResend,
  touchAfterResend,
} from "./decode.ts";
import * as scripts from "../scripts/generated.ts";
import { encode, encodeSet } from "./encode.ts";
import type { Mode } from "./modes.ts";
import { ScriptCall, type NodeCall } from "./node-call.ts";
import { unexpected } from "./refusals.ts";
import type {
  Acquire,
  AcquireReply,
  InspectReply,
  Operation,
  Place,
  PlaceLeft,
  Release,
  ReleaseReply,
  RenewReply,
  Touch,
  TouchReply,
} from "./operation.ts";

/**
 * Several operations in one script call. If the server lacks the script, sends its text and has the
 * process checked: later calls may take a script in the server's cache as proof of the process.
 */
export class ListCall {
  readonly operations: readonly Operation[];
  readonly #mode: Mode;
  /**
   * Value of `verify` in `#command`. Nodes differ in whether they need the check of the process, so
   * the command may have to be encoded again for the next node.
   */
  #verify = false;
  #command: readonly string[] | undefined;

  constructor(mode: Mode, operations: readonly Operation[]) {
    this.#mode = mode;
    this.operations = operations;
  }

  get key(): string {
    return this.operations[0]?.keys[0] ?? "";
  }

  /** A release never needs INFO: it is allowed on every node, in every state. */
  get needsInfo(): boolean {
    return this.#mode.strict && this.operations.some(({ kind }) => kind !== "release");
  }

  first(verify: boolean): readonly string[] {
    if (this.#command === undefined || this.#verify !== verify) {
      this.#command = encode(this.#mode, this.operations, verify);
      this.#verify = verify;
    }
    return this.#command;
  }

  whole(): readonly string[] {
    return encode(this.#mode, this.operations, true, true);
  }
}

/** One operation, sent in a script call of its own or together with others. */
abstract class OperationCall<Own extends Operation, Reply> implements NodeCall<Reply> {
  readonly operation: Own;
  readonly mode: Mode;
  #command: readonly string[] | undefined;
  #verify = false;

  constructor(mode: Mode, operation: Own) {
    this.mode = mode;
    this.operation = operation;
  }

  get key(): string {
    return this.operation.keys[0] ?? "";
  }

  get needsInfo(): boolean {
    return this.mode.strict;
  }

  first(verify: boolean): readonly string[] {
    if (this.#command === undefined || this.#verify !== verify) {
      this.#command = encode(this.mode, [this.operation], verify);
      this.#verify = verify;
    }
    return this.#command;
  }

  fallback(error: Error): readonly string[] | undefined {
    return error.message.startsWith("NOSCRIPT") ? this.whole() : undefined;
  }

  whole(): readonly string[] {
    return encode(this.mode, [this.operation], true, true);
  }

  read(reply: unknown, _byFallback: boolean): Reply {
    const end = typeof reply === "string" ? reply.indexOf("\n") : -1;
    if (typeof reply !== "string" || end < 0) throw unexpected(reply);
    return this.readLine(reply.slice(end + 1), reply.slice(0, end));
  }

  abstract readLine(line: string | undefined, stamp: string): Reply;
}

export class AcquireCall extends OperationCall<Acquire, AcquireReply> {
  /** Reply if the node grants the proposal (the fence that the client suggests). */
  readonly #granted: AcquireReply;

  constructor(mode: Mode, operation: Acquire) {
    super(mode, operation);
    this.#granted = { kind: "granted", fence: mode.fences ? operation.fence : 0 };
  }

  readLine(line: string | undefined, stamp: string): AcquireReply {
    return line === "G" ? this.#granted : readAcquire(line, stamp);
  }
}

/** Acquire of one lock by `SET`, or by the script if the server is too old for NX with GET. */
export class SetCall extends AcquireCall {
  readonly #set: readonly string[];

  constructor(mode: Mode, operation: Acquire, set: readonly string[]) {
    super(mode, operation);
    this.#set = set;
  }

  override first(): readonly string[] {
    return this.#set;
  }

  override fallback(error: Error): readonly string[] | undefined {
    // For a key of another type the script is sent, too, because its refusal names that type.
    return /^(ERR syntax error|WRONGTYPE)/.test(error.message) ? this.whole() : undefined;
  }

  override read(reply: unknown, byFallback: boolean): AcquireReply {
    return byFallback ? super.read(reply, true) : readSet(reply, this.operation.owner);
  }
}

export class TouchCall extends OperationCall<Touch, TouchReply> {
  readLine(line: string | undefined, stamp: string): TouchReply {
    return readTouch(line, stamp);
  }

  afterResend(reply: TouchReply): TouchReply | undefined {
    return touchAfterResend(reply);
  }
}

export class ReleaseCall extends OperationCall<Release, ReleaseReply> {
  override get needsInfo(): boolean {
    return false;
  }

  readLine(line: string | undefined): ReleaseReply {
    return readRelease(line);
  }

  afterResend(reply: ReleaseReply): ReleaseReply {
    return releaseAfterResend(reply);
  }
}

/**
 * Extends many locks in one script call. perf (renew): one listener gets the reply for all of them.
 */
export class RenewCall extends ListCall implements NodeCall<RenewReply> {
  fallback(error: Error): readonly string[] | undefined {
    return error.message.startsWith("NOSCRIPT") ? this.whole() : undefined;
  }

  read(reply: unknown): RenewReply {
    return readTouches(linesOf(reply, this.operations.length));
  }

  /**
   * Called if the driver may have sent the call twice. A lock that the owner does not have any more
   * (N) becomes one that is touched again alone (T).
   */
  afterResend(reply: RenewReply): RenewReply {
    if (reply.kind !== "decided") return reply;
    return { kind: "decided", verdicts: reply.verdicts.replaceAll("N", "T") };
  }
}

/**
 * Makes script calls with several operations. perf (inflight): the nodes of a quorum mostly get the
 * same operations in one turn, so the call that was encoded for one node is used for all.
 */
export class Lists {
  readonly #mode: Mode;
  #last: ListCall | undefined;

  constructor(mode: Mode) {
    this.#mode = mode;
  }

  callOf(operations: readonly Operation[]): ListCall {
    const last = this.#last?.operations;
    const isSame =
      last?.length === operations.length &&
      operations.every((operation, index) => operation === last[index]);
    if (!isSame || this.#last === undefined) this.#last = new ListCall(this.#mode, operations);
    return this.#last;
  }
}

/** Owner and fence of a lock, which form the value of its key. */
export interface Held {
  readonly owner: string;
  readonly fenceNumber: number;
}

const inspectForm = { script: scripts.inspect, read: readInspect };

/** Makes the calls to nodes, for one kind of server and with or without fences. */
export class Calls {
  readonly mode: Mode;

  constructor(mode: Mode) {
    this.mode = mode;
  }

  acquire(
    keys: readonly string[],
    owner: string,
    ttlMs: number,
    proposal: number,
    place?: Place,
  ): NodeCall<AcquireReply> {
    const operation = { kind: "acquire", keys, owner, ttlMs, fence: proposal, place } as const;
    const set = encodeSet(this.mode, operation);
    return set === undefined
      ? new AcquireCall(this.mode, operation)
      : new SetCall(this.mode, operation, set);
  }

  /**
   * Raises the stored fence to `fence`, extends the lock (`ttlMs` > 0), or only checks that the
   * owner still has it (`ttlMs` 0).
   */
  touch(
    keys: readonly string[],
    owner: string,
    ttlMs: number,
    fence: number,
  ): NodeCall<TouchReply> {
    return new TouchCall(this.mode, { kind: "touch", keys, owner, ttlMs, fence });
  }

  /** Extends many locks of one key each. Called only if `hasLists` of the mode is true. */
  renew(keys: readonly string[], held: readonly Held[], ttlMs: number): NodeCall<RenewReply> {
    const operations = held.map(({ owner, fenceNumber }, index) => {
      const kind = "touch" as const;
      return { kind, keys: [keys[index] ?? ""], owner, ttlMs, fence: fenceNumber };
    });
    return new RenewCall(this.mode, operations);
  }

  /**
   * Deletes the keys of `owner`. With the `fence` of the grant (0 if unknown), the server can
   * compare the whole value and need not search for the owner in it.
   */
  release(
    keys: readonly string[],
    owner: string,
    left: PlaceLeft = "",
    fence = 0,
  ): NodeCall<ReleaseReply> {
    return new ReleaseCall(this.mode, { kind: "release", keys, owner, fence, left });
  }

  inspect(key: string): NodeCall<InspectReply> {
    return new ScriptCall(inspectForm, [key, this.mode.queueOf(key)], []);
  }
}
