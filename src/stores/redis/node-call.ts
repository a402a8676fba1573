import type { BatchPart } from "./batch.ts";
import { readBatched, unexpected, type AcquireReply } from "./replies.ts";
import type { Script } from "./scripts/generated.ts";

/** One command for a node, encoded once for all of them. */
export interface NodeCall<Reply> {
  /** What a Cluster client routes by. */
  readonly key: string;
  /** The long way must not be gone where INFO is denied: nobody could vouch for the process. */
  readonly needsInfo?: boolean;
  /** What to send first. `verify` asks the script to check which process it runs in. */
  first(verify: boolean): readonly string[];
  /** What to send when the first was answered with an error that only means "the long way". */
  fallback(error: Error): readonly string[] | undefined;
  /** Understands the reply, or throws. */
  read(reply: unknown, byFallback: boolean): Reply;
  /** The same as a part of a batch, where it can be; its reply is then read by `readPart`. */
  readonly part: BatchPart | undefined;
  readPart(reply: unknown): Reply;
  /**
   * What `reply` is worth if the call may have run before; undefined if it has to be sent again to
   * know. Left out for calls whose reply is the same at each run.
   */
  afterResend?(reply: Reply): Reply | undefined;
}

/** What all calls of one script have in common: made once, and shared by them. */
export interface ScriptForm<Reply> {
  readonly script: Script;
  /** Comes before the keys and arguments of a call: the node record, and what it is told. */
  readonly record?: { readonly key: string; readonly args: readonly string[] };
  /** The script takes the verify flag as its first argument. */
  readonly verifies?: boolean;
  readonly needsInfo?: boolean;
  /** Set that flag on every call: for scripts that are too rare to save on. */
  readonly alwaysVerify?: boolean;
  readonly read: (text: string) => Reply;
  /** What it is in a batch, where it can be in one. */
  readonly code?: BatchPart["code"];
  /** The script is given the queue of each key as well, behind the keys. */
  readonly queueOf?: (key: string) => string;
  readonly afterResend?: (reply: Reply) => Reply | undefined;
}

/**
 * A script, by its SHA-1 first. A granting script is never loaded except by an EVAL that verifies
 * the process it enters. The command is put together only when it is sent: most leave in a batch.
 */
export class ScriptCall<Reply> implements NodeCall<Reply> {
  readonly keys: readonly string[];
  readonly args: readonly string[];
  readonly #form: ScriptForm<Reply>;
  /** The same for all nodes, but that not all of them have to verify. */
  #made: { readonly verify: boolean; readonly command: readonly string[] } | undefined;

  constructor(form: ScriptForm<Reply>, keys: readonly string[], args: readonly string[]) {
    this.#form = form;
    this.keys = keys;
    this.args = args;
  }

  get key(): string {
    return this.keys[0] ?? this.#form.record?.key ?? "";
  }

  get needsInfo(): boolean {
    return this.#form.needsInfo ?? false;
  }

  get code(): BatchPart["code"] | undefined {
    return this.#form.code;
  }

  get queueOf(): ((key: string) => string) | undefined {
    return this.#form.queueOf;
  }

  get part(): BatchPart | undefined {
    return isPart(this) ? this : undefined;
  }

  afterResend(reply: Reply): Reply | undefined {
    const { afterResend } = this.#form;
    return afterResend === undefined ? reply : afterResend(reply);
  }

  first(verify: boolean): readonly string[] {
    if (this.#made?.verify !== verify) {
      const command = this.#command("EVALSHA", this.#form.script.sha, verify);
      this.#made = { verify, command };
    }
    return this.#made.command;
  }

  fallback(error: Error): readonly string[] | undefined {
    return error.message.startsWith("NOSCRIPT") ? this.whole() : undefined;
  }

  /** The text of the script itself, verifying. */
  whole(): readonly string[] {
    return this.#command("EVAL", this.#form.script.source, true);
  }

  read(reply: unknown, _byFallback: boolean): Reply {
    return this.readPart(reply);
  }

  readPart(reply: unknown): Reply {
    if (typeof reply !== "string") throw unexpected(reply);
    return this.#form.read(reply);
  }

  #command(name: string, script: string, verify: boolean): readonly string[] {
    const { record, verifies, alwaysVerify, queueOf } = this.#form;
    const named = queueOf === undefined ? this.keys.length : 2 * this.keys.length;
    const command = [name, script, String(named + (record === undefined ? 0 : 1))];
    if (record !== undefined) command.push(record.key);
    command.push(...this.keys);
    if (queueOf !== undefined) for (const key of this.keys) command.push(queueOf(key));
    if (verifies === true) command.push(verify || alwaysVerify === true ? "1" : "0");
    if (record !== undefined) command.push(...record.args);
    command.push(...this.args);
    return command;
  }
}

/** An acquire with a fence to propose, which in a batch is not said again. */
export class ProposingCall extends ScriptCall<AcquireReply> {
  readonly #granted: AcquireReply;
  readonly #text: string;

  constructor(
    form: ScriptForm<AcquireReply>,
    keys: readonly string[],
    args: readonly string[],
    proposal: number,
  ) {
    super(form, keys, args);
    this.#granted = { kind: "granted", fence: proposal };
    this.#text = ` ${args[2] ?? ""}`;
  }

  override read(reply: unknown): AcquireReply {
    // The proposal's own text, in the usual answer: nothing has to be made a number of.
    const isProposal =
      typeof reply === "string" && reply.startsWith("G ") && reply.endsWith(this.#text);
    return isProposal ? this.#granted : super.readPart(reply);
  }

  override readPart(reply: unknown): AcquireReply {
    if (typeof reply !== "string") throw unexpected(reply);
    return readBatched(reply, this.#granted);
  }
}

function isPart<Call extends { readonly code: BatchPart["code"] | undefined }>(
  call: Call,
): call is Call & { readonly code: BatchPart["code"] } {
  return call.code !== undefined;
}

/** `SET key owner NX GET PX ttl`, and the script where the server is too old for NX with GET. */
export class PlainSetCall<Reply> extends ScriptCall<Reply> {
  readonly #readValue: (value: string | undefined, owner: string) => Reply;
  #set: readonly string[] | undefined;

  /** `readValue` gets the value that was there before, which a foreign client may have chosen. */
  constructor(
    form: ScriptForm<Reply>,
    keys: readonly string[],
    args: readonly string[],
    readValue: (value: string | undefined, owner: string) => Reply,
  ) {
    super(form, keys, args);
    this.#readValue = readValue;
  }

  override first(): readonly string[] {
    const { args } = this;
    this.#set ??= ["SET", this.key, args[0] ?? "", "NX", "GET", "PX", args[1] ?? ""];
    return this.#set;
  }

  override fallback(error: Error): readonly string[] | undefined {
    // The script also names the type of a key that holds no text.
    return /^(ERR syntax error|WRONGTYPE)/.test(error.message) ? this.whole() : undefined;
  }

  override read(reply: unknown, byFallback: boolean): Reply {
    if (byFallback) return this.readPart(reply);
    const owner = this.args[0] ?? "";
    if (reply === null || reply === undefined) return this.#readValue(undefined, owner);
    if (typeof reply !== "string") throw unexpected(reply);
    return this.#readValue(reply, owner);
  }
}
