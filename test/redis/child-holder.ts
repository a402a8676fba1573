import { type ChildProcess, fork } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import { compile } from "../../scripts/build.mjs";

const script = fileURLToPath(new URL("holder.child.mjs", import.meta.url));

/** Builds the library once for the test file. Returns the folder of the build. */
export function shareBuild(): { readonly folder: string } {
  const build = { folder: "" };
  beforeAll(() => {
    build.folder = mkdtempSync(join(tmpdir(), "holdfast-build-"));
    const { output } = compile(build.folder, ["--declaration", "false"]);
    if (!existsSync(join(build.folder, "index.js"))) throw new Error(`no build: ${output}`);
    writeFileSync(join(build.folder, "package.json"), '{ "type": "module" }\n');
  });
  afterAll(() => rmSync(build.folder, { recursive: true, force: true }));
  return build;
}

/** Another process with its own lock manager. */
export class ChildHolder {
  readonly #process: ChildProcess;
  readonly #answers: object[] = [];
  #wake: () => void = () => undefined;

  constructor(process: ChildProcess) {
    this.#process = process;
    process.on("message", (answer: object) => {
      this.#answers.push(answer);
      this.#wake();
    });
  }

  order(order: object): void {
    this.#process.send(order);
  }

  /** Returns its next message. */
  async answer<Answer extends object>(): Promise<Answer> {
    while (this.#answers.length === 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#answers.shift() as Answer;
  }

  signal(name: "SIGSTOP" | "SIGCONT"): void {
    this.#process.kill(name);
  }

  /** Kills it, as a crash would. */
  async kill(): Promise<void> {
    const exited = once(this.#process, "exit");
    this.#process.kill("SIGKILL");
    await exited;
  }

  async end(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const exited = once(this.#process, "exit");
    this.#process.kill("SIGCONT");
    this.order({ kind: "close" });
    const timer = setTimeout(() => this.#process.kill("SIGKILL"), 10_000);
    await exited;
    clearTimeout(timer);
  }
}

/** Starts one that is ended when the test is over. */
export async function startChildHolder(
  build: { readonly folder: string },
  ports: readonly number[],
): Promise<ChildHolder> {
  const child = new ChildHolder(fork(script, [build.folder, ...ports.map(String)]));
  onTestFinished(() => child.end());
  await child.answer();
  return child;
}
