import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/**
 * What a signal goes to. `group`: the command leads a process group of its own, and the kernel
 * reaches all of it. `tree`: it shares our group, because a terminal must reach it; then it and
 * everything that descends from it are looked up one by one.
 */
export interface Target {
  readonly pid: number;
  readonly kind: "group" | "tree";
}

/** Sends to all of it; those found before are reached also when their parent has died since. */
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

/** Whether anything of it is left. */
export function isAlive(target: Target, known: ReadonlySet<number>): boolean {
  if (target.kind === "group") return send(-target.pid, 0);
  return [target.pid, ...known].some((pid) => send(pid, 0));
}

function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    // EPERM is an answer, too: it is there, and not ours to signal.
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

/** Every process with its parent. */
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
    // The name in parentheses may itself hold spaces and parentheses.
    return Number(text.slice(text.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    return undefined;
  }
}
