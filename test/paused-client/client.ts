import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { eventually } from "../support/redis-eventually.ts";
import type { ClientPlan, Message } from "./client-plan.ts";

const script = fileURLToPath(new URL("client-process.mjs", import.meta.url));

/** A client in its own process, which a test can stop, resume and read messages from. */
export class Client {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #lines: NodeJS.AsyncIterator<string>;
  readonly #closed: Promise<unknown>;
  #complaints = "";

  constructor(plan: ClientPlan) {
    // Without the execution flags of this process, which belong to the test runner.
    const child = spawn(process.execPath, [script, JSON.stringify(plan)], { stdio: "pipe" });
    this.#child = child;
    this.#closed = once(child, "close");
    this.#lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    child.stderr.on("data", (chunk: Buffer) => {
      this.#complaints = (this.#complaints + chunk.toString()).slice(-4_000);
    });
    // The process may have ended when a line is written to it. Its earlier output shows why.
    child.stdin.on("error", () => undefined);
  }

  /** Returns the next message, which must be of this kind. */
  async message<Kind extends Message["kind"]>(kind: Kind): Promise<Message & { kind: Kind }> {
    const { done, value } = await this.#lines.next();
    if (done === true) {
      await this.#closed;
      throw new Error(`the client ended before it sent "${kind}":\n${this.#complaints}`);
    }
    const message = JSON.parse(value) as Message;
    if (isOf(message, kind)) return message;
    throw new Error(`the client sent ${value} and not "${kind}"`);
  }

  /** Resolves when the system shows the process as stopped. */
  async stop(): Promise<void> {
    this.#child.kill("SIGSTOP");
    await eventually(() => this.isStopped);
  }

  resume(): void {
    this.#child.kill("SIGCONT");
  }

  get isStopped(): boolean {
    const stat = readFileSync(`/proc/${this.#child.pid}/stat`, "utf8");
    // The state comes after the name, which is in brackets and may contain any character.
    return stat.slice(stat.lastIndexOf(")") + 2).startsWith("T");
  }

  /**
   * Lets it continue where it waits for input. If it is stopped, it continues when it is resumed.
   */
  nudge(): void {
    this.#child.stdin.write("\n");
  }

  /** Resolves when it has ended by itself, without errors. */
  async ends(): Promise<void> {
    await this.#closed;
    const { exitCode, signalCode } = this.#child;
    if (exitCode === 0 && this.#complaints === "") return;
    throw new Error(`the client ended with ${exitCode ?? signalCode}:\n${this.#complaints}`);
  }

  /** Kills it, even if it is stopped: this signal needs no handler. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#closed;
  }
}

/** Starts a client that is killed at the end of the test. */
export function startClient(plan: ClientPlan): Client {
  const client = new Client(plan);
  onTestFinished(() => client.kill());
  return client;
}

function isOf<Kind extends Message["kind"]>(
  message: Message,
  kind: Kind,
): message is Message & { kind: Kind } {
  return message.kind === kind;
}
