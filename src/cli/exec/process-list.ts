import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/** One process of this machine. */
export interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  /** Session id; 0 if the system does not provide it. */
  readonly session: number;
  /** Start time in ticks since boot. It distinguishes processes that had the same pid. */
  readonly started: string | undefined;
  /** True for a zombie, which runs no code any more. */
  readonly hasEnded: boolean;
}

/** Returns all visible processes of this machine, by pid. */
export function listProcesses(): ReadonlyMap<number, ProcessEntry> {
  const entries = process.platform === "linux" ? fromProc() : fromPs();
  return new Map(entries.map((entry) => [entry.pid, entry]));
}

/** Returns the process with this pid; undefined if there is none. */
export function findProcess(pid: number): ProcessEntry | undefined {
  return process.platform === "linux" ? readEntry(String(pid)) : listProcesses().get(pid);
}

/**
 * True if the process was started with `text` in its environment. False if the environment cannot
 * be read.
 */
export function hasInEnvironment(pid: number, text: string): boolean {
  if (process.platform !== "linux") return false;
  try {
    return readFileSync(`/proc/${pid}/environ`).includes(text);
  } catch {
    // The process has ended, or belongs to another user.
    return false;
  }
}

function fromProc(): readonly ProcessEntry[] {
  const names = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return names.flatMap((name) => readEntry(name) ?? []);
}

function readEntry(name: string): ProcessEntry | undefined {
  try {
    const text = readFileSync(`/proc/${name}/stat`, "latin1");
    // Parse after the last ")": the process name may contain spaces and parentheses.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const [state = "", parent, group, session] = fields;
    return {
      pid: Number(name),
      parent: Number(parent),
      group: Number(group),
      session: Number(session),
      started: fields[19],
      hasEnded: state === "Z" || state === "X",
    };
  } catch {
    return undefined;
  }
}

function fromPs(): readonly ProcessEntry[] {
  const args = ["-A", "-o", "pid=,ppid=,pgid=,stat="];
  const listed = execFileSync("ps", args, { encoding: "utf8", timeout: 5_000 });
  return listed
    .trim()
    .split("\n")
    .map((line) => {
      const [pid, parent, group, state = ""] = line.trim().split(/\s+/);
      const ids = { pid: Number(pid), parent: Number(parent), group: Number(group) };
      return { ...ids, session: 0, started: undefined, hasEnded: state.startsWith("Z") };
    });
}
