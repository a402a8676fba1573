import type { BatchPart } from "./batch.ts";
import { unexpected } from "./replies.ts";
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
}

interface ScriptCallOptions<Reply> {
  /** The script takes the verify flag as its first argument. */
  readonly verifies?: boolean;
  readonly needsInfo?: boolean;
  /** Set that flag on every call: for scripts that are too rare to save on. */
  readonly alwaysVerify?: boolean;
  readonly routeBy?: string | undefined;
  readonly read: (text: string) => Reply;
  /** What it is in a batch: the arguments without those that a batch says once for all. */
  readonly part?: BatchPart;
}

/**
 * A script, by its SHA-1 first. A granting script is never loaded except by an EVAL that verifies
 * the process it enters: so whoever finds it in a cache knows that this very incarnation was
 * checked, and the check need not be paid for on every call.
 */
export class ScriptCall<Reply> implements NodeCall<Reply> {
  readonly key: string;
  readonly needsInfo: boolean;
  readonly #script: Script;
  readonly #tail: readonly string[];
  /** Place of the verify flag in a whole command; 0 where the script takes none. */
  readonly #verifyIndex: number;
  readonly #read: (text: string) => Reply;
  readonly part: BatchPart | undefined;

  constructor(
    script: Script,
    keys: readonly string[],
    args: readonly string[],
    options: ScriptCallOptions<Reply>,
  ) {
    this.#script = script;
    this.#read = options.read;
    this.part = options.part;
    this.needsInfo = options.needsInfo ?? false;
    this.key = options.routeBy ?? keys[0] ?? "";
    const verifies = options.verifies ?? false;
    const flag = options.alwaysVerify === true ? "1" : "0";
    this.#tail = [String(keys.length), ...keys, ...(verifies ? [flag] : []), ...args];
    this.#verifyIndex = verifies ? 3 + keys.length : 0;
  }

  first(verify: boolean): readonly string[] {
    return this.#command("EVALSHA", this.#script.sha, verify);
  }

  fallback(error: Error): readonly string[] | undefined {
    return error.message.startsWith("NOSCRIPT") ? this.whole() : undefined;
  }

  /** The text of the script itself, verifying. */
  whole(): readonly string[] {
    return this.#command("EVAL", this.#script.source, true);
  }

  read(reply: unknown): Reply {
    if (typeof reply !== "string") throw unexpected(reply);
    return this.#read(reply);
  }

  readPart(reply: unknown): Reply {
    return this.read(reply);
  }

  #command(name: string, script: string, verify: boolean): readonly string[] {
    const command = [name, script, ...this.#tail];
    if (verify && this.#verifyIndex > 0) command[this.#verifyIndex] = "1";
    return command;
  }
}

/** `SET key owner NX GET PX ttl`, and a script where the server is too old for NX with GET. */
export class PlainSetCall<Reply> implements NodeCall<Reply> {
  readonly key: string;
  readonly #command: readonly string[];
  readonly #script: ScriptCall<Reply>;
  readonly #readValue: (value: string | undefined) => Reply;

  /** `readValue` gets the value that was there before, which a foreign client may have chosen. */
  constructor(
    script: ScriptCall<Reply>,
    set: { readonly key: string; readonly owner: string; readonly ttlMs: number },
    readValue: (value: string | undefined) => Reply,
  ) {
    this.key = set.key;
    this.#command = ["SET", set.key, set.owner, "NX", "GET", "PX", String(set.ttlMs)];
    this.#script = script;
    this.#readValue = readValue;
  }

  first(): readonly string[] {
    return this.#command;
  }

  fallback(error: Error): readonly string[] | undefined {
    return error.message.startsWith("ERR syntax error") ? this.#script.whole() : undefined;
  }

  get part(): BatchPart | undefined {
    return this.#script.part;
  }

  readPart(reply: unknown): Reply {
    return this.#script.read(reply);
  }

  read(reply: unknown, byFallback: boolean): Reply {
    if (byFallback) return this.#script.read(reply);
    if (reply === null || reply === undefined) return this.#readValue(undefined);
    if (typeof reply !== "string") throw unexpected(reply);
    return this.#readValue(reply);
  }
}
