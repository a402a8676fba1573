import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/**
 * Receiver of signals. `group`: the command leads its own process group, and the kernel reaches all
 * of it. `tree`: the command shares our group because the terminal must reach it, so the command
 * and its descendants are looked up one by one.
 */
export interface Target {
  readonly pid: number;
  readonly kind: "group" | "tree";
}

/**
 * Sends a signal to all processes. `known` are processes found before: they are reached even if
 * their parent has died since. Returns all processes found.
 */
export function signalAll(
  target: Target,
  signal: NodeJS.Signals,
  known: ReadonlySet<number> = new Set(),
): ReadonlySet<number> {
  if (target.kind === "group") {
    send(-target.pid, signal);
    return known;
  }
  const found = new Set([...known, target.pid, ...descendantsOf(target.pid)]);
  for (const pid of found) send(pid, signal);
  return found;
}

/** True if any process of the target is left. */
export function isAlive(target: Target, known: ReadonlySet<number>): boolean {
  if (target.kind === "group") return send(-target.pid, 0);
  return [target.pid, ...known].some((pid) => send(pid, 0));
}

function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    // EPERM: the process exists, but we may not signal it.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function descendantsOf(root: number): readonly number[] {
  const children = new Map<number, number[]>();
  for (const [pid, parent] of processes()) {
    const siblings = children.get(parent);
    if (siblings === undefined) children.set(parent, [pid]);
    else siblings.push(pid);
  }
  const found: number[] = [];
  const pending = [root];
  for (let pid = pending.pop(); pid !== undefined; pid = pending.pop()) {
    for (const child of children.get(pid) ?? []) {
      found.push(child);
      pending.push(child);
    }
  }
  return found;
}

/** Returns each process id with its parent's. */
function processes(): readonly (readonly [number, number])[] {
  if (process.platform === "linux") {
    const names = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    return names.flatMap((name) => {
      const parent = parentOf(name);
      return parent === undefined ? [] : [[Number(name), parent] as const];
    });
  }
  const listed = execFileSync("ps", ["-A", "-o", "pid=,ppid="], {
    encoding: "utf8",
    timeout: 5_000,
  });
  return listed
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number))
    .map(([pid = 0, parent = 0]) => [pid, parent] as const);
}

function parentOf(pid: string): number | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // Parse after the last ")": the process name may contain spaces and parentheses.
    return Number(text.slice(text.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    return undefined;
  }
}
