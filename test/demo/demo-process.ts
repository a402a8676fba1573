import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { buildProject, type BuiltProject } from "../support/built-project.ts";

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the demo as a process, with its own folder for temporary files. */
export class DemoProcess {
  readonly temporary: string;
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  #stdout = "";
  #stderr = "";

  constructor(folder: string, name: string, args: readonly string[]) {
    this.temporary = join(folder, `temporary-${name}`);
    mkdirSync(this.temporary);
    const script = join(folder, "dist", "cli", "main.js");
    this.child = spawn(process.execPath, [script, "demo", ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      // Some colour libraries write colours to a pipe if CI is set.
      env: { ...process.env, CI: "true", TMPDIR: this.temporary },
    });
    this.child.stdout?.on("data", (chunk: Buffer) => (this.#stdout += chunk.toString()));
    this.child.stderr?.on("data", (chunk: Buffer) => (this.#stderr += chunk.toString()));
    this.ended = new Promise((resolve) => {
      this.child.on("close", (code, signal) => {
        resolve({ code, signal, stdout: this.#stdout, stderr: this.#stderr });
      });
    });
  }

  async said(text: RegExp): Promise<void> {
    await eventually(`${text} in the output`, () => text.test(this.#stdout));
  }

  /** Pids of the workers: each has the temporary folder in its environment. */
  workers(): readonly number[] {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .filter((pid) => contentOf(`/proc/${pid}/cmdline`).includes("demo-worker.js"))
      .filter((pid) => contentOf(`/proc/${pid}/environ`).includes(this.temporary))
      .map(Number);
  }
}

export class Stage {
  readonly #project: BuiltProject;
  readonly #demos: DemoProcess[] = [];

  private constructor(project: BuiltProject) {
    this.#project = project;
  }

  static async open(): Promise<Stage> {
    return new Stage(await buildProject());
  }

  start(...args: readonly string[]): DemoProcess {
    const demo = new DemoProcess(this.#project.folder, String(this.#demos.length), args);
    this.#demos.push(demo);
    return demo;
  }

  async close(): Promise<void> {
    for (const demo of this.#demos) {
      demo.child.kill("SIGTERM");
      await demo.ended;
    }
    this.#project.remove();
  }
}

/** Waits until `isSo` returns true. The limit is far above the time of any correct run. */
export async function eventually(what: string, isSo: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + 90_000;
  while (!isSo()) {
    if (performance.now() > deadlineMs) throw new Error(`waited in vain for ${what}`);
    await sleep(20);
  }
}

export function isStopped(pid: number): boolean {
  return /^State:\s+T/m.test(contentOf(`/proc/${pid}/status`));
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
