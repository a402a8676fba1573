import type { Script } from "../scripts/generated.ts";

import type { Operation } from "./operation.ts";
import { unexpected } from "./refusals.ts";

/** One request, encoded once for all nodes. */
export interface NodeCall<Reply> {
  /** A Cluster client routes by this key. */
  readonly key: string;
  /** The text of the script must not be sent if INFO is denied: the script could not verify. */
  readonly needsInfo?: boolean;
  /** Returns what to send first. `verify` makes the script check which process it runs in. */
  first(verify: boolean): readonly string[];
  /** Returns what to send if the reply to the first is an error that allows it. */
  fallback(error: Error): readonly string[] | undefined;
  /** Decodes the reply, or throws. */
  read(reply: unknown, byFallback: boolean): Reply;
  /** Set if it can be sent in a list with others. `readLine` then decodes its verdict. */
  readonly operation?: Operation;
  readLine?(line: string | undefined, stamp: string): Reply;
  /**
   * Returns what `reply` proves if the call may have run before; undefined if it has to be sent
   * again to know. Left out for calls whose reply is the same at each run.
   */
  afterResend?(reply: Reply): Reply | undefined;
}

/** What all calls of one script have in common. */
export interface ScriptForm<Reply> {
  readonly script: Script;
  /** The script checks which process it runs in: its first argument says so. */
  readonly verifies?: boolean;
  readonly read: (text: string) => Reply;
  readonly afterResend?: (reply: Reply) => Reply | undefined;
}

/** A script that is no list of operations. Sent by its SHA-1 first, then as text. */
export class ScriptCall<Reply> implements NodeCall<Reply> {
  readonly keys: readonly string[];
  readonly args: readonly string[];
  readonly #form: ScriptForm<Reply>;
  #command: readonly string[] | undefined;

  constructor(form: ScriptForm<Reply>, keys: readonly string[], args: readonly string[]) {
    this.#form = form;
    this.keys = keys;
    this.args = args;
  }

  get key(): string {
    return this.keys[0] ?? "";
  }

  first(): readonly string[] {
    this.#command ??= this.#encode("EVALSHA", this.#form.script.sha);
    return this.#command;
  }

  fallback(error: Error): readonly string[] | undefined {
    if (!error.message.startsWith("NOSCRIPT")) return undefined;
    return this.#encode("EVAL", this.#form.script.source);
  }

  read(reply: unknown): Reply {
    if (typeof reply !== "string") throw unexpected(reply);
    return this.#form.read(reply);
  }

  afterResend(reply: Reply): Reply | undefined {
    const { afterResend } = this.#form;
    return afterResend === undefined ? reply : afterResend(reply);
  }

  #encode(name: string, script: string): readonly string[] {
    const command = [name, script, String(this.keys.length), ...this.keys];
    if (this.#form.verifies === true) command.push("1");
    command.push(...this.args);
    return command;
  }
}
