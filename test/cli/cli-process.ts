import { spawn, type ChildProcess } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, onTestFinished } from "vitest";
import { buildPrograms } from "../../scripts/build.mjs";
import { projectRoot } from "../support/source-files.ts";

/** Runs the command line as users do: built from these sources, in a process for each run. */
export interface Cli {
  /** Resolves when the run has ended. */
  run(args: readonly string[], options?: RunOptions): Promise<Ended>;
  start(args: readonly string[], options?: RunOptions): Running;
  /** Path of a script that runs the built program, for commands inside commands. */
  readonly program: string;
  /** Creates a folder for one test. */
  folder(): string;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /**
   * Runs it through this program, such as `script`, with the command line as its last arguments.
   */
  readonly through?: (command: readonly string[]) => readonly string[];
}

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly ended: Promise<Ended>;
  stdout(): string;
  stderr(): string;
}

/** Builds the programs once for the tests of a file. */
export function builtCli(): Cli {
  const root = mkdtempSync(join(tmpdir(), "holdfast-cli-"));
  const program = join(root, "dist", "cli", "main.js");
  const running = new Set<ChildProcess>();
  // Each test has its own default store, so that a lock that one leaves held does not block the
  // next.
  let state = root;
  beforeEach(() => {
    state = mkdtempSync(join(root, "state-"));
  });
  beforeAll(async () => {
    // For tests that run it as another user.
    chmodSync(root, 0o755);
    await buildPrograms(join(root, "dist"));
    copyFileSync(join(projectRoot, "package.json"), join(root, "package.json"));
    symlinkSync(join(projectRoot, "node_modules"), join(root, "node_modules"));
  });
  afterAll(() => {
    for (const child of running) child.kill("SIGKILL");
    rmSync(root, { recursive: true, force: true });
  });
  const start = (args: readonly string[], options: RunOptions = {}): Running => {
    const command = [process.execPath, program, ...args];
    const [file = "", ...rest] = options.through?.(command) ?? command;
    const child = spawn(file, rest, {
      cwd: options.cwd ?? root,
      env: { PATH: process.env["PATH"], HOME: root, XDG_STATE_HOME: state, ...options.env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    running.add(child);
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (data) => (stdout += String(data)));
    child.stderr.on("data", (data) => (stderr += String(data)));
    child.stdin.on("error", () => undefined);
    const ended = new Promise<Ended>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code, signal) => {
        running.delete(child);
        resolve({ code, signal, stdout, stderr });
      });
    });
    return { child, pid: child.pid ?? -1, ended, stdout: () => stdout, stderr: () => stderr };
  };
  return {
    program,
    start,
    run(args, options) {
      const started = start(args, options);
      started.child.stdin?.end();
      return started.ended;
    },
    folder() {
      const folder = mkdtempSync(join(tmpdir(), "holdfast-cli-test-"));
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
      return folder;
    },
  };
}

/** Waits until `holds` returns true. The limit is generous: no test measures that time. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`it never came about that ${what}`);
    await sleep(20);
  }
}

/** Returns the lines of a file, once it has `count` complete ones. */
export async function linesOf(path: string, count: number): Promise<readonly string[]> {
  const read = (): string[] =>
    existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(0, -1) : [];
  await until(`${path} has ${count} lines`, () => read().length >= count);
  return read();
}

/** True if the process runs. A zombie does not. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    const status = readFileSync(`/proc/${pid}/stat`, "utf8");
    return !/^[ZX]/.test(status.slice(status.lastIndexOf(")") + 2));
  } catch (error) {
    // Without /proc, only the error of the signal is left to decide.
    return (error as NodeJS.ErrnoException).code === "ENOENT" && process.platform !== "linux";
  }
}

/** Returns a shell command that writes its pid and that of a child, and then keeps running. */
export function worker(file: string, onTerm = "exit 0"): readonly string[] {
  const script = `trap '${onTerm}' TERM; sleep 1000 & echo $$ >> ${file}; echo $! >> ${file}; wait`;
  return ["sh", "-c", script];
}
