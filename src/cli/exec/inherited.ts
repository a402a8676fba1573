import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/**
 * Problem: a command may need descriptors above 2 that its caller has opened: a log (`3>log`), the
 * job server of make, sockets of systemd. Node.js marks the first descriptors that it inherits so
 * that they are closed in every program that it starts.
 *
 * Idea: find these descriptors, and pass them to the command by their numbers.
 *
 * Limits: only on Linux, where /proc shows what a descriptor is. Node.js opens pipes, events and
 * `/dev/null` of its own; what looks like these and comes after the first of them is not passed on.
 */

/** Limit for descriptors that are passed on. Node.js marks about the first 16. */
const descriptorsMax = 64;
const closesOnExec = 0o2000000;

interface Descriptor {
  readonly number: number;
  /** What it leads to, such as `/var/log/x` or `pipe:[123]`. */
  readonly target: string;
}

/** Returns the inherited descriptors that a program would not get. Call it before any is opened. */
export function inheritedDescriptors(): readonly number[] {
  if (process.platform !== "linux") return [];
  const open = openDescriptors();
  const firstOwn = open.find(({ target }) => target.startsWith("anon_inode:"))?.number ?? Infinity;
  const inherited = open.filter(({ number, target }) => {
    if (target.startsWith("anon_inode:") || target.startsWith("/proc/")) return false;
    // The channel of a parent that is a Node.js program belongs to this process.
    if (String(number) === process.env["NODE_CHANNEL_FD"]) return false;
    if (number < firstOwn) return true;
    const hasBothEnds = open.filter((other) => other.target === target).length > 1;
    return target !== "/dev/null" && !(target.startsWith("pipe:") && hasBothEnds);
  });
  return inherited.map(({ number }) => number);
}

/** Returns the descriptors from 3 on that are marked to be closed, in order. */
function openDescriptors(): readonly Descriptor[] {
  const found: Descriptor[] = [];
  for (const name of namesIn("/proc/self/fd")) {
    const number = Number(name);
    if (number < 3 || number >= descriptorsMax) continue;
    try {
      const flags = /^flags:\s*(\d+)$/m.exec(
        readFileSync(`/proc/self/fdinfo/${name}`, "utf8"),
      )?.[1];
      if ((Number.parseInt(flags ?? "0", 8) & closesOnExec) === 0) continue;
      found.push({ number, target: readlinkSync(`/proc/self/fd/${name}`) });
    } catch {
      // The error is ignored: the descriptor was closed meanwhile, as that of the folder is.
    }
  }
  return found.toSorted((one, other) => one.number - other.number);
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    // Without /proc nothing is known about descriptors.
    return [];
  }
}
