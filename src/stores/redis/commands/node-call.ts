import type { Script } from "../scripts/generated.ts";

import type { Operation } from "./operation.ts";
import { unexpected } from "./refusals.ts";

/** One request, encoded once for all nodes. */
export interface NodeCall<Reply> {
  /** Key by which a Cluster client routes the request. */
  readonly key: string;
  /**
   * True if the text of the script must not be sent when INFO is denied: the script could not check
   * in which process it runs.
   */
  readonly needsInfo?: boolean;
  /** Returns the first command. `verify` makes the script check in which process it runs. */
  first(verify: boolean): readonly string[];
  /**
   * Returns the second command if `error`, the reply to the first, allows one; otherwise undefined.
   */
  fallback(error: Error): readonly string[] | undefined;
  /** Decodes the reply, or throws. */
  read(reply: unknown, byFallback: boolean): Reply;
  /**
   * Set if the call can be sent together with others. `readLine` then decodes the line of the
   * common reply that belongs to this operation.
   */
  readonly operation?: Operation;
  readLine?(line: string | undefined, stamp: string): Reply;
  /**
   * Called with a reply if the driver may have sent the call twice, so that the reply may describe
   * a second run. Returns what the reply proves, or undefined if the call must be sent again. Left
   * out for calls whose reply is the same in each run.
   */
  afterResend?(reply: Reply): Reply | undefined;
}

/** Properties that all calls of one script share. */
export interface ScriptForm<Reply> {
  readonly script: Script;
  /** True if the script checks in which process it runs when its first argument is "1". */
  readonly verifies?: boolean;
  readonly read: (text: string) => Reply;
  readonly afterResend?: (reply: Reply) => Reply | undefined;
}

/**
 * Call of a script that does not run operations (acquire, touch, release), such as inspect.lua.
 * Sends the SHA-1 of the script first, then its text if the server lacks the script.
 */
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
