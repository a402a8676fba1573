import type { RedisConnection } from "../../src/clients/contract.ts";
import type { Script } from "../../src/stores/redis/scripts/generated.ts";
import { operationsIn, scriptIn } from "../support/sent-operations.ts";

/** Executes a command: on a real server, or on a model of one. */
export type Backend = (command: readonly string[]) => Promise<unknown>;

/** Sources that replace the real ones, by the name of the script. */
export type Mutations = Readonly<Record<string, string>>;

/**
 * Returns the source of `script` without one rule. Throws unless the rule is there exactly once.
 */
export function without(script: Script, rule: string, instead = ""): string {
  const pieces = script.source.split(rule);
  if (pieces.length !== 2) {
    throw new Error(`${script.name}: expected "${rule}" once, found it ${pieces.length - 1} times`);
  }
  return pieces.join(instead);
}

/** A command that a client has sent and that has not been answered. */
export interface HeldCommand {
  /** Kind of its operations, or name of its script. */
  readonly script: string;
  readonly command: readonly string[];
  /** Replies of all its executions. The client has received none of them yet. */
  readonly replies: unknown[];
  answer(reply: unknown): void;
  fail(error: Error): void;
}

/**
 * A connection on which nothing moves by itself. The test decides when a command is executed, how
 * often, whether the client receives a reply, and which of the replies.
 */
export class HeldLine implements RedisConnection {
  readonly library = "held";
  readonly topology = "standalone";
  readonly pending: HeldCommand[] = [];
  readonly #backend: Backend;
  readonly #mutations: Mutations;
  readonly #held: ReadonlySet<string>;
  #open = false;

  /** Operations and scripts that are not in `held`, and plain commands, pass at once. */
  constructor(backend: Backend, mutations: Mutations, held: readonly string[]) {
    this.#backend = backend;
    this.#mutations = mutations;
    this.#held = new Set(held);
  }

  send(_key: string, command: readonly string[]): Promise<unknown> {
    const [, name = ""] = command;
    const script = operationsIn(command)?.kinds[0] ?? scriptIn(command)?.name ?? name;
    if (this.#open || !this.#held.has(script)) return this.#execute(command);
    return new Promise((resolve, reject) => {
      const done = (settle: () => void): void => {
        const at = this.pending.indexOf(held);
        if (at >= 0) this.pending.splice(at, 1);
        settle();
      };
      const held: HeldCommand = {
        script,
        command,
        replies: [],
        answer: (reply) => done(() => resolve(reply)),
        fail: (error) => done(() => reject(error)),
      };
      this.pending.push(held);
    });
  }

  /** Runs a held command on the server. The client receives the reply only by `answer`. */
  async execute(held: HeldCommand): Promise<unknown> {
    const reply = await this.#execute(held.command);
    held.replies.push(reply);
    return reply;
  }

  /** Lets everything pass from now on, held commands first. */
  async letGo(): Promise<void> {
    this.#open = true;
    for (const held of this.pending.slice()) held.answer(await this.#execute(held.command));
  }

  /** Runs the script by its text and never by its SHA-1, so script caches play no part. */
  async #execute(command: readonly string[]): Promise<unknown> {
    const script = scriptIn(command);
    if (script === undefined) return await this.#backend(command);
    const source = this.#mutations[script.name] ?? script.source;
    return await this.#backend(["EVAL", source, ...command.slice(2)]);
  }
}
