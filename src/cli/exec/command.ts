import { spawn, type ChildProcess, type StdioOptions } from "node:child_process";
import { constants } from "node:os";
import type { Writable } from "node:stream";
import { signalBase } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
import { freeGate, gated, isPassedOn } from "./gate.ts";
import { findProcess } from "./process-list.ts";
import { ProcessTree } from "./process-tree.ts";
import type { Target } from "./target.ts";

export interface CommandEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const lookMs = 20;

/** The command that runs under the lock. */
export class RunningCommand {
  readonly target: Target;
  readonly tree: ProcessTree;
  readonly ended: Promise<CommandEnd>;
  readonly #gate: Writable | undefined;

  private constructor(child: ChildProcess, target: Target, gate: number | undefined) {
    this.target = target;
    this.tree = new ProcessTree(target);
    this.#gate = (gate === undefined ? undefined : child.stdio[gate]) as Writable | undefined;
    // The error is ignored: if the child was killed at the gate, its exit event reports that.
    this.#gate?.on("error", () => undefined);
    this.ended = new Promise((resolve) => {
      child.once("exit", (code, signal) => resolve({ code, signal }));
    });
  }

  /**
   * Starts the command behind the gate (a shell that waits until the command may run).
   *
   * With a terminal, the command stays in the process group of holdfast, which terminal and shell
   * treat as one job: Ctrl-C, Ctrl-Z, `fg` and prompts work as usual. Without a terminal, the
   * command leads its own process group and session, so that all its processes can be ended
   * together.
   *
   * If a shell would drop names of the environment, there is no gate: a program in between would
   * get the values as arguments, which every user can read. Until the watchdog receives the pid, it
   * finds the command by its mark (a text in the environment).
   */
  static async start(
    file: string,
    args: readonly string[],
    env: NodeJS.ProcessEnv,
    { mark, inherited }: { readonly mark: string; readonly inherited: readonly number[] },
  ): Promise<RunningCommand> {
    const kind = targetKind();
    const gate = isPassedOn(env) ? freeGate(inherited) : undefined;
    const [program = "", ...rest] = gate === undefined ? [file, ...args] : gated(gate, file, args);
    const child = spawn(program, rest, {
      stdio: streams(inherited, gate),
      detached: kind === "group",
      env,
    });
    const { pid } = child;
    if (pid === undefined) throw await notStarted(child, file);
    const target = { pid, kind, mark, started: findProcess(pid)?.started };
    return new RunningCommand(child, target, gate);
  }

  /** Opens the gate: the waiting shell becomes the command. */
  letGo(): void {
    this.#gate?.end("\n");
  }

  /**
   * Sends SIGTERM now, and SIGKILL after `killAfterMs` to the processes that are left. Resolves
   * when the command has ended.
   */
  async stop(killAfterMs: number): Promise<void> {
    const killAtMs = performance.now() + killAfterMs;
    if (killAfterMs > 0) {
      this.tree.signal("SIGTERM");
      // A stopped process handles SIGTERM only after SIGCONT.
      this.tree.signal("SIGCONT");
    }
    while (performance.now() < killAtMs && this.tree.isAlive()) {
      await new Promise((resolve) => setTimeout(resolve, lookMs));
    }
    this.tree.kill();
    await this.ended;
  }
}

/** Returns the descriptors of the command: its own three, what it inherits, and the gate. */
function streams(inherited: readonly number[], gate: number | undefined): StdioOptions {
  const count = 1 + Math.max(2, gate ?? 0, ...inherited);
  return Array.from({ length: count }, (_, number) => {
    if (number === gate) return "pipe";
    return number < 3 || inherited.includes(number) ? number : "ignore";
  });
}

export function targetKind(): Target["kind"] {
  const streams = [process.stdin, process.stdout, process.stderr];
  return streams.some(({ isTTY }) => isTTY) ? "tree" : "group";
}

/** Returns the exit code, or 128 + n for signal n, as shells do. */
export function exitCodeOf({ code, signal }: CommandEnd): number {
  return signal === null ? (code ?? 0) : signalBase + constants.signals[signal];
}

async function notStarted(child: ChildProcess, file: string): Promise<Failure> {
  const error = await new Promise<NodeJS.ErrnoException>((resolve) => child.once("error", resolve));
  return new Failure("cannotRun", `${file}: cannot be executed: ${error.message}`, error);
}
