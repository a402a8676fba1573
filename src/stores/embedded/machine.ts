import { execFileSync } from "node:child_process";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/** Identifies the process that holds a lock, so that other processes can check if it is dead. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Start time in ticks since boot; undefined if the system does not provide it. */
  readonly started: string | undefined;
  /**
   * Scope of the pid: on Linux the pid namespace, otherwise the host. Empty if other processes
   * cannot check the pid.
   */
  readonly place: string;
}

/** Facts about the machine that the store uses. A port, so that tests can simulate a reboot. */
export interface Machine {
  /** Id that changes with every boot; undefined if the system does not provide one. */
  readonly bootId: string | undefined;
  /** Time namespace of this process. Two time namespaces do not share a monotonic clock. */
  readonly timeNamespace: string;
  readonly self: ProcessIdentity;
  /**
   * True only if the process has certainly ended. A process that is stopped by a signal has not
   * ended.
   */
  isDead(process: ProcessIdentity): boolean;
}

/**
 * Returns the facts about this machine. They are read once, because none of them changes while a
 * process runs.
 */
export function thisMachine(): Machine {
  known ??= look();
  return known;
}

let known: Machine | undefined;

function look(): Machine {
  const self = selfIdentity();
  return {
    bootId: bootId(),
    timeNamespace: readable(() => readlinkSync("/proc/self/ns/time")) ?? "",
    self,
    isDead: (process) => isDead(process, self),
  };
}

function bootId(): string | undefined {
  const text =
    process.platform === "linux"
      ? readable(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8"))
      : process.platform === "darwin"
        ? readable(() =>
            execFileSync("/usr/sbin/sysctl", ["-n", "kern.bootsessionuuid"], {
              encoding: "utf8",
              timeout: 5_000,
            }),
          )
        : undefined;
  const id = text?.trim().toLowerCase();
  return id !== undefined && /^[0-9a-f-]{16,64}$/.test(id) ? id : undefined;
}

function selfIdentity(): ProcessIdentity {
  const { pid } = process;
  if (process.platform !== "linux") return { pid, started: undefined, place: hostname() };
  // False if /proc belongs to another pid namespace and shows other pids. Other processes then
  // cannot check this process, and only the TTL frees its locks.
  const ownProc = readable(() => readlinkSync("/proc/self")) === String(pid);
  if (!ownProc) return { pid, started: undefined, place: "" };
  const started = processStatus(pid)?.started;
  return { pid, started, place: readable(() => readlinkSync("/proc/self/ns/pid")) ?? "" };
}

/**
 * True if no process has the pid of `suspect`, if the process is a zombie, or if it started at
 * another time than `suspect`. A process of another pid namespace or host counts as alive. Without
 * start times, a reused pid counts as alive as well, and the lock ends with its TTL.
 */
function isDead(suspect: ProcessIdentity, self: ProcessIdentity): boolean {
  if (suspect.place === "" || suspect.place !== self.place) return false;
  if (suspect.pid === self.pid && suspect.started === self.started) return false;
  try {
    process.kill(suspect.pid, 0);
  } catch (error) {
    // ESRCH means that there is no such process. After any other error, such as EPERM, it exists.
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
  if (suspect.started === undefined) return false;
  // /proc may hide the processes of other users, so a process without a status counts as alive.
  const status = processStatus(suspect.pid);
  if (status === undefined) return false;
  return status.started !== suspect.started || status.state === "Z" || status.state === "X";
}

function processStatus(pid: number): { state: string; started: string } | undefined {
  if (process.platform !== "linux") return undefined;
  const text = readable(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  // The second field is the process name in parentheses. The name may contain spaces and
  // parentheses.
  const fields = text?.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state, started] = [fields?.[0], fields?.[19]];
  return state === undefined || started === undefined ? undefined : { state, started };
}

/** Returns the result of `read`, or undefined if it throws: a missing fact must not fail a call. */
function readable(read: () => string): string | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
