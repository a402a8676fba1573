import type { ChildProcess } from "node:child_process";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { isRunning, killChild, startChild } from "../tools/processes/children.mjs";
import type { ClientConfig } from "./client/config.ts";
import type { ShiftedClock } from "./shifted-clock.ts";

const stopMsMax = 25_000;

/** One client of the run: a process that is replaced by a new one when it is killed. */
export class ClientProcess {
  readonly index: number;
  readonly journals: string[] = [];
  /** Descriptions of behaviour that no client may show. */
  readonly misbehaved: string[] = [];
  readonly #folder: string;
  readonly #config: Omit<ClientConfig, "who" | "journal" | "seed">;
  readonly #seed: number;
  readonly #clock: ShiftedClock;
  readonly #clockOffsetMs: number;
  #incarnation = 0;
  #child: ChildProcess | undefined;
  #ending = false;

  constructor(
    index: number,
    folder: string,
    seed: number,
    config: Omit<ClientConfig, "who" | "journal" | "seed">,
    clock: { readonly of: ShiftedClock; readonly offsetMs: number },
  ) {
    this.index = index;
    this.#folder = folder;
    this.#seed = seed;
    this.#config = config;
    this.#clock = clock.of;
    this.#clockOffsetMs = clock.offsetMs;
    this.stepClock(0);
  }

  launch(): void {
    const who = `c${this.index + 1}.${this.#incarnation}`;
    const journal = join(this.#folder, `client-${who}.jsonl`);
    const log = join(this.#folder, `client-${who}.log`);
    const seed = this.#seed * 1_000 + this.#incarnation;
    const config: ClientConfig = { ...this.#config, who, journal, seed };
    this.#incarnation += 1;
    this.#ending = false;
    this.journals.push(journal);
    const program = fileURLToPath(new URL("client/main.js", import.meta.url));
    const child = startChild(process.execPath, [program, JSON.stringify(config)], {
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      env: this.#clock.env,
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (chunk: Buffer) => appendFileSync(log, chunk));
    }
    child.once("exit", (code, signal) => {
      if (!this.#ending) this.misbehaved.push(`${who} ended by itself (${code ?? signal})`);
      else if (code !== null && code !== 0) this.misbehaved.push(`${who} ended with ${code}`);
    });
    this.#child = child;
  }

  freeze(): void {
    this.#child?.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child?.kill("SIGCONT");
  }

  /** Steps its wall clock by `stepMs` from its offset for the run. 0 undoes a step. */
  stepClock(stepMs: number): void {
    this.#clock.set(this.#clockOffsetMs + stepMs);
  }

  async kill(): Promise<void> {
    this.#ending = true;
    if (this.#child !== undefined) await killChild(this.#child);
  }

  /**
   * Requests the process to finish its work. If it does not, it is killed, which counts as
   * misbehaviour.
   */
  async stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined || !isRunning(child)) return;
    this.#ending = true;
    const gone = new Promise((resolve) => {
      child.once("exit", resolve);
    });
    child.send("stop");
    const patience = new AbortController();
    const late = sleep(stopMsMax, "late", { signal: patience.signal }).catch(() => "gone");
    if ((await Promise.race([gone, late])) === "late") {
      this.misbehaved.push(`client ${this.index + 1} did not end within ${stopMsMax} ms`);
      await killChild(child);
    }
    patience.abort();
  }
}
