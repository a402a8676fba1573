import { type ChildProcess, spawn, type SpawnOptions } from "node:child_process";

/** Processes that this run started and that still run. None of them may outlive the run. */
const running = new Set<ChildProcess>();

function killAll(): void {
  for (const child of running) child.kill("SIGKILL");
}

let watching = false;

function watch(): void {
  if (watching) return;
  watching = true;
  process.once("exit", killAll);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(signal, () => {
      killAll();
      // Other exit handlers still have to remove their folders.
      process.exit(130);
    });
  }
}

/** Starts a child that is killed with this process, however that ends. */
export function start(
  program: string,
  args: readonly string[],
  options: SpawnOptions,
): ChildProcess {
  watch();
  const child = spawn(program, args, options);
  running.add(child);
  child.once("exit", () => running.delete(child));
  child.on("error", () => running.delete(child));
  return child;
}

/** Kills the child as a crash would, and waits until the process is gone. */
export async function crash(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => {
    child.once("exit", resolve);
  });
  child.kill("SIGKILL");
  await gone;
}
