import { spawn, type ChildProcess } from "node:child_process";
import { constants } from "node:os";
import type { Writable } from "node:stream";
import { signalBase } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
import { gated, gateDescriptor } from "./gate.ts";
import { isAlive, signalAll, type Target } from "./target.ts";

export interface CommandEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const lookMs = 20;

/** The command that runs under the lock. */
export class RunningCommand {
  readonly target: Target;
  readonly ended: Promise<CommandEnd>;
  readonly #gate: Writable;

  private constructor(child: ChildProcess, target: Target) {
    this.target = target;
    this.#gate = child.stdio[gateDescriptor] as Writable;
    // Ignored: if the child was killed at the gate, its exit reports that.
    this.#gate.on("error", () => undefined);
    this.ended = new Promise((resolve) => {
      child.once("exit", (code, signal) => resolve({ code, signal }));
    });
  }

  /**
   * Starts the command behind the gate.
   *
   * With a terminal, the command stays in our process group, which terminal and shell treat as one
   * job: Ctrl-C, Ctrl-Z, `fg` and prompts work as usual. Without a terminal, it leads its own
   * process group and session, so that all its processes can be ended together.
   */
  static async start(
    file: string,
    args: readonly string[],
    env: NodeJS.ProcessEnv,
  ): Promise<RunningCommand> {
    const kind = targetKind();
    const [shell = "", ...rest] = gated(file, args, env);
    const child = spawn(shell, rest, {
      stdio: ["inherit", "inherit", "inherit", "pipe"],
      detached: kind === "group",
      env,
    });
    const { pid } = child;
    if (pid === undefined) throw await notStarted(child, file);
    return new RunningCommand(child, { pid, kind });
  }

  /** Opens the gate: the waiting shell becomes the command. */
  letGo(): void {
    this.#gate.end("\n");
  }

  /**
   * Sends SIGTERM now, and SIGKILL after `killAfterMs` to the processes that are left. Resolves
   * when the command has ended.
   */
  async stop(killAfterMs: number): Promise<void> {
    const killAtMs = performance.now() + killAfterMs;
    let known = signalAll(this.target, killAfterMs > 0 ? "SIGTERM" : "SIGKILL");
    // A stopped process handles SIGTERM only after SIGCONT.
    known = signalAll(this.target, "SIGCONT", known);
    while (isAlive(this.target, known) && performance.now() < killAtMs) {
      await new Promise((resolve) => setTimeout(resolve, lookMs));
    }
    signalAll(this.target, "SIGKILL", known);
    await this.ended;
  }
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
