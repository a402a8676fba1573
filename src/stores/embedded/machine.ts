import { execFileSync } from "node:child_process";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/** Which process holds a lock, so that others can tell when it is dead. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, in ticks since boot; undefined where the system does not tell. */
  readonly started: string | undefined;
  /** Where the pid means something: on Linux the pid namespace, else the host; "" is nowhere. */
  readonly place: string;
}

/** What the store knows of the machine. A port, so that tests can reboot one. */
export interface Machine {
  /** Changes with every boot; undefined where the system does not tell. */
  readonly bootId: string | undefined;
  /** Processes of different time namespaces do not share a monotonic clock. */
  readonly timeNamespace: string;
  readonly self: ProcessIdentity;
  /** True only where it is certain that the process has ended. A stopped one has not. */
  isDead(process: ProcessIdentity): boolean;
}

/** This machine, asked once: nothing of it changes while a process lives. */
export function thisMachine(): Machine {
  known ??= look();
  return known;
}

let known: Machine | undefined;

function look(): Machine {
  const self = selfIdentity();
  return {
    bootId: bootId(),
    timeNamespace: tell(() => readlinkSync("/proc/self/ns/time")) ?? "",
    self,
    isDead: (process) => isDead(process, self),
  };
}

function bootId(): string | undefined {
  const told =
    process.platform === "linux"
      ? tell(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8"))
      : process.platform === "darwin"
        ? tell(() =>
            execFileSync("/usr/sbin/sysctl", ["-n", "kern.bootsessionuuid"], {
              encoding: "utf8",
              timeout: 5_000,
            }),
          )
        : undefined;
  const id = told?.trim().toLowerCase();
  return id !== undefined && /^[0-9a-f-]{16,64}$/.test(id) ? id : undefined;
}

function selfIdentity(): ProcessIdentity {
  const { pid } = process;
  if (process.platform !== "linux") return { pid, started: undefined, place: hostname() };
  // A /proc of another pid namespace counts processes otherwise than we do. Then our pid says
  // nothing to anybody, and only the TTL frees what we hold.
  const ownProc = tell(() => readlinkSync("/proc/self")) === String(pid);
  if (!ownProc) return { pid, started: undefined, place: "" };
  const started = processStatus(pid)?.started;
  return { pid, started, place: tell(() => readlinkSync("/proc/self/ns/pid")) ?? "" };
}

/**
 * Dead is: no such process, a zombie, or a process of that pid which started at another time. A
 * pid of another place means nothing here, so such a process is never called dead. Where the system
 * does not tell start times, a pid in use again looks alive, and the TTL decides.
 */
function isDead(suspect: ProcessIdentity, self: ProcessIdentity): boolean {
  if (suspect.place === "" || suspect.place !== self.place) return false;
  if (suspect.pid === self.pid && suspect.started === self.started) return false;
  try {
    process.kill(suspect.pid, 0);
  } catch (error) {
    // Any other error, such as EPERM, comes from a process that exists.
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
  if (suspect.started === undefined) return false;
  // Nothing to read where /proc hides the processes of other users: alive, as far as we know.
  const status = processStatus(suspect.pid);
  if (status === undefined) return false;
  return status.started !== suspect.started || status.state === "Z" || status.state === "X";
}

function processStatus(pid: number): { state: string; started: string } | undefined {
  if (process.platform !== "linux") return undefined;
  const text = tell(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  // The second field is the name in parentheses, and may itself hold spaces and parentheses.
  const fields = text?.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state, started] = [fields?.[0], fields?.[19]];
  return state === undefined || started === undefined ? undefined : { state, started };
}

/** What cannot be read is not known; it is never a reason to fail. */
function tell(read: () => string): string | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
