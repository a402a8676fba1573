import { findProcess, hasInEnvironment, listProcesses, type ProcessEntry } from "./process-list.ts";
import type { Target } from "./target.ts";

/**
 * Limit for rounds of SIGKILL. Each round finds processes that were started during the round
 * before.
 */
const roundsMax = 10;

/** Finds and signals all processes of a command. Keeps a list of the processes that were found. */
export class ProcessTree {
  readonly #target: Target;
  /**
   * Processes found so far, including ended ones: an ended process may still be the leader of a
   * group.
   */
  readonly #members = new Map<number, ProcessEntry>();

  constructor(target: Target) {
    this.#target = target;
  }

  /** Finds all processes, and then sends each one the signal once. */
  signal(signal: NodeJS.Signals): void {
    const { pid, kind } = this.#target;
    const found = this.#find();
    // A signal to the group reaches all its processes at once, including those that are just being
    // started.
    const inGroup = kind === "group" ? found.filter(({ group }) => group === pid) : [];
    if (inGroup.length > 0) send(-pid, signal);
    for (const entry of found) if (!inGroup.includes(entry)) send(entry.pid, signal);
    // Processes with the mark come last, because the kernel may delay a read of their environment.
    for (const entry of this.#findMarked()) send(entry.pid, signal);
  }

  /** Sends SIGKILL until no new process is found. */
  kill(): void {
    for (let round = 0; round < roundsMax; round += 1) {
      const before = this.#members.size;
      this.signal("SIGKILL");
      if (round > 0 && this.#members.size === before) return;
    }
  }

  /** True if any process of the command is left. */
  isAlive(): boolean {
    const known = [...this.#members.values()];
    if (known.some(({ pid, started }) => isRunning(findProcess(pid), started))) return true;
    return this.#find().length > 0 || this.#findMarked().length > 0;
  }

  /** Returns the running processes of the command, found by parents, groups and sessions. */
  #find(): readonly ProcessEntry[] {
    return this.#grow(listProcesses(), []);
  }

  /**
   * Returns processes with the mark of the command that were not found before, and all processes
   * that belong to them.
   */
  #findMarked(): readonly ProcessEntry[] {
    const all = listProcesses();
    const known = new Set(this.#members.keys());
    const unknown = [...all.values()].filter(({ pid, hasEnded }) => !hasEnded && !known.has(pid));
    const marked = unknown.filter(({ pid }) => hasInEnvironment(pid, this.#target.mark));
    if (marked.length === 0) return [];
    return this.#grow(all, marked).filter(({ pid }) => !known.has(pid));
  }

  #grow(
    all: ReadonlyMap<number, ProcessEntry>,
    more: readonly ProcessEntry[],
  ): readonly ProcessEntry[] {
    for (const { pid, started } of this.#members.values()) {
      const now = all.get(pid);
      if (now !== undefined && now.started !== started) this.#members.delete(pid);
    }
    const { pid, started } = this.#target;
    const root = all.get(pid);
    if (root !== undefined && (started ?? root.started) === root.started) this.#add(root);
    for (const entry of more) this.#add(entry);
    for (let size = -1; size !== this.#members.size;) {
      size = this.#members.size;
      for (const entry of all.values()) if (this.#isRelated(entry)) this.#add(entry);
    }
    return [...this.#members.values()].flatMap(({ pid: id, started: since }) => {
      const now = all.get(id);
      return now !== undefined && isRunning(now, since) ? [now] : [];
    });
  }

  #isRelated({ pid, parent, group, session }: ProcessEntry): boolean {
    const isNew = pid !== process.pid && !this.#members.has(pid);
    return isNew && [parent, group, session].some((id) => this.#members.has(id));
  }

  #add(entry: ProcessEntry): void {
    if (entry.pid !== process.pid) this.#members.set(entry.pid, entry);
  }
}

function isRunning(entry: ProcessEntry | undefined, started: string | undefined): boolean {
  return entry !== undefined && !entry.hasEnded && entry.started === started;
}

/** Sends a signal. Skips a process that has just ended or that belongs to another user. */
export function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // The error is ignored: the process has ended, or this user has no right to signal it.
  }
}
