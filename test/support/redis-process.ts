import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { redisCommand } from "./redis-command.ts";

/** What this process started and has not stopped yet, so that no crash leaves a server behind. */
const running = new Set<ChildProcess>();
const directories = new Set<string>();

function cleanUp(): void {
  for (const child of running) child.kill("SIGKILL");
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
}

let watching = false;

function cleanUpAtExit(): void {
  if (watching) return;
  watching = true;
  process.once("exit", cleanUp);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(signal, () => {
      cleanUp();
      // The handler is gone now: the signal does what it would have done without us.
      process.kill(process.pid, signal);
    });
  }
}

export function makeDirectory(): string {
  cleanUpAtExit();
  const directory = mkdtempSync(join(tmpdir(), "holdfast-redis-"));
  directories.add(directory);
  return directory;
}

export function removeDirectory(directory: string): void {
  // Only what was made here: a directory given by a test belongs to the test.
  if (!directories.delete(directory)) return;
  rmSync(directory, { recursive: true, force: true });
}

/** Starts `redis-server` in `directory` and resolves when it answers on `port`. */
export async function spawnRedis(
  port: number,
  directory: string,
  args: readonly string[],
): Promise<ChildProcess> {
  cleanUpAtExit();
  const child = spawn("redis-server", [...args], { cwd: directory, stdio: "ignore" });
  let failure: Error | undefined;
  child.once("error", (error) => {
    failure = error;
  });
  running.add(child);
  child.once("exit", () => running.delete(child));
  // A server that outlives its test must not keep the test process alive.
  child.unref();
  const deadline = Date.now() + 30_000;
  while (Date.now() < deadline) {
    if (failure !== undefined) throw failure;
    if (child.exitCode !== null || child.signalCode !== null) break;
    if (await answers(port, child.pid)) return child;
    await sleep(10);
  }
  await killRedis(child);
  throw new Error(`redis-server on port ${port} did not start:\n${logTail(directory)}`);
}

/** Whether it is this very process that answers, not a stranger that took the port first. */
async function answers(port: number, pid: number | undefined): Promise<boolean> {
  try {
    if ((await redisCommand(port, ["PING"], 2000)) !== "PONG") return false;
    const info = String(await redisCommand(port, ["INFO", "server"], 2000));
    return info.includes(`process_id:${pid}\r\n`);
  } catch (error) {
    // A server started with a password answers, only not to us.
    return error instanceof Error && error.message.startsWith("NOAUTH");
  }
}

export async function killRedis(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  child.ref();
  const exited = new Promise((resolve) => {
    child.once("exit", resolve);
  });
  child.kill("SIGKILL");
  await exited;
}

function logTail(directory: string): string {
  try {
    return readFileSync(join(directory, "redis.log"), "utf8").split("\n").slice(-15).join("\n");
  } catch {
    return "(no log)";
  }
}
