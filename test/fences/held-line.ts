import type { RedisConnection } from "../../src/clients/contract.ts";
import * as scripts from "../../src/stores/redis/scripts/generated.ts";

/** Where a command goes in the end: a real server, or a model of one. */
export type Backend = (command: readonly string[]) => Promise<unknown>;

/** Sources that take the place of the real ones, by the name of the script. */
export type Mutations = Readonly<Record<string, string>>;

const scriptsBySha = new Map<string, scripts.Script>();
for (const value of Object.values(scripts)) scriptsBySha.set(value.sha, value);

/** What the source of `script` is when one rule is taken out; fails when the rule is not there. */
export function without(script: scripts.Script, rule: string, instead = ""): string {
  const pieces = script.source.split(rule);
  if (pieces.length !== 2) {
    throw new Error(`${script.name}: expected "${rule}" once, found it ${pieces.length - 1} times`);
  }
  return pieces.join(instead);
}

/** A command that a client has sent and that has not been answered. */
export interface HeldCommand {
  readonly script: string;
  readonly command: readonly string[];
  /** What it gave each time it was executed; the client has heard none of it yet. */
  readonly replies: unknown[];
  answer(reply: unknown): void;
  fail(error: Error): void;
}

/**
 * A connection on which nothing moves by itself. The test decides when a command is executed, how
 * often, whether the client hears of it, and which of the answers it hears.
 */
export class HeldLine implements RedisConnection {
  readonly library = "held";
  readonly topology = "standalone";
  readonly pending: HeldCommand[] = [];
  readonly #backend: Backend;
  readonly #mutations: Mutations;
  readonly #held: ReadonlySet<string>;
  #open = false;

  /** Scripts that are not `held`, and plain commands, pass at once. */
  constructor(backend: Backend, mutations: Mutations, held: readonly string[]) {
    this.#backend = backend;
    this.#mutations = mutations;
    this.#held = new Set(held);
  }

  send(_key: string, command: readonly string[]): Promise<unknown> {
    const [, name = ""] = command;
    const script = this.#scriptOf(command)?.name ?? name;
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

  /** Runs a held command on the server; the client learns of it only by `answer`. */
  async execute(held: HeldCommand): Promise<unknown> {
    const reply = await this.#execute(held.command);
    held.replies.push(reply);
    return reply;
  }

  /** From now on everything passes, what was held first. */
  async letGo(): Promise<void> {
    this.#open = true;
    for (const held of this.pending.slice()) held.answer(await this.#execute(held.command));
  }

  #scriptOf(command: readonly string[]): scripts.Script | undefined {
    const [verb, script = ""] = command;
    if (verb === "EVALSHA") return scriptsBySha.get(script);
    if (verb !== "EVAL") return undefined;
    return [...scriptsBySha.values()].find(({ source }) => source === script);
  }

  /** By its text and never by its SHA-1: which process has what in its cache is not the matter. */
  async #execute(command: readonly string[]): Promise<unknown> {
    const script = this.#scriptOf(command);
    if (script === undefined) return await this.#backend(command);
    const source = this.#mutations[script.name] ?? script.source;
    return await this.#backend(["EVAL", source, ...command.slice(2)]);
  }
}
