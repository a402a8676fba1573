import {
  granted,
  lineOf,
  linesOf,
  readAcquire,
  readRelease,
  readSet,
  readTouch,
  readTouches,
  releaseAfterResend,
  touchAfterResend,
} from "./decode.ts";
import { encode, encodeSet, type Encoding } from "./encode.ts";
import type { NodeCall } from "./node-call.ts";
import type {
  Acquire,
  AcquireReply,
  Operation,
  Release,
  ReleaseReply,
  RenewReply,
  Touch,
  TouchReply,
} from "./operation.ts";

/**
 * Several operations in one script call. Only a text that checks in which process it runs may put a
 * script that grants into the server's cache.
 */
export class ListCall {
  readonly operations: readonly Operation[];
  readonly #mode: Encoding;
  /**
   * `verify` of the stored command. The operations are the same for all nodes, but not all have to
   * verify.
   */
  #verify = false;
  #command: readonly string[] | undefined;

  constructor(mode: Encoding, operations: readonly Operation[]) {
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

/** One operation: sent in a list with others, or as a list of one. */
abstract class OperationCall<Own extends Operation, Reply> implements NodeCall<Reply> {
  readonly operation: Own;
  readonly mode: Encoding;
  #command: readonly string[] | undefined;
  #verify = false;

  constructor(mode: Encoding, operation: Own) {
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
    return lineOf(reply, this);
  }

  abstract readLine(line: string | undefined, stamp: string): Reply;
}

export class AcquireCall extends OperationCall<Acquire, AcquireReply> {
  /** Reply if the node grants the proposal (the fence that the client suggests). */
  readonly #granted: AcquireReply;

  constructor(mode: Encoding, operation: Acquire) {
    super(mode, operation);
    this.#granted = granted(mode.fences ? operation.fence : 0);
  }

  readLine(line: string | undefined, stamp: string): AcquireReply {
    return line === "G" ? this.#granted : readAcquire(line, stamp);
  }
}

/** Acquire of one lock by `SET`, or by the script if the server is too old for NX with GET. */
export class SetCall extends AcquireCall {
  readonly #set: readonly string[];

  constructor(mode: Encoding, operation: Acquire, set: readonly string[]) {
    super(mode, operation);
    this.#set = set;
  }

  override first(): readonly string[] {
    return this.#set;
  }

  override fallback(error: Error): readonly string[] | undefined {
    // The script also returns the type of a key that holds no text.
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

/** perf (renew): the touches of many locks have one listener for all verdicts. */
export class RenewCall extends ListCall implements NodeCall<RenewReply> {
  fallback(error: Error): readonly string[] | undefined {
    return error.message.startsWith("NOSCRIPT") ? this.whole() : undefined;
  }

  read(reply: unknown): RenewReply {
    return readTouches(linesOf(reply, this.operations.length));
  }

  /** A touch of a missing key is sent again alone. */
  afterResend(reply: RenewReply): RenewReply {
    if (reply.kind !== "decided") return reply;
    return { kind: "decided", verdicts: reply.verdicts.replaceAll("N", "T") };
  }
}

export function acquireCall(mode: Encoding, operation: Acquire): NodeCall<AcquireReply> {
  const set = encodeSet(mode, operation);
  return set === undefined ? new AcquireCall(mode, operation) : new SetCall(mode, operation, set);
}

/**
 * perf (inflight): the nodes of a quorum mostly get the same operations in one turn. The list that
 * was encoded for one node is used for the others as well.
 */
export class Lists {
  readonly #mode: Encoding;
  #last: ListCall | undefined;

  constructor(mode: Encoding) {
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
