import { accessSync, constants, mkdirSync, realpathSync, statfsSync, statSync } from "node:fs";
import { InvalidOptionError, UnsupportedError } from "../../core/errors.ts";

/**
 * File systems that several machines may share, by the type number that Linux reports for each. On
 * them, file locks and shared memory fail or are unreliable between machines.
 */
const sharedFileSystems: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB"],
  [0x517b, "SMB"],
  [0x01021997, "9P"],
  [0x65735546, "FUSE or virtiofs"],
  [0x00c36400, "Ceph"],
  [0x5346414f, "AFS"],
  [0x0bd00bd0, "Lustre"],
  [0x47504653, "GPFS"],
  [0x7461636f, "OCFS2"],
  [0x01161970, "GFS2"],
  [0x786f4256, "a VirtualBox share"],
  [0xbacbacbc, "a VMware share"],
]);

const memoryFileSystems: ReadonlySet<number> = new Set([0x01021994, 0x858458f6]);

export interface LockDirectory {
  /** Path without symbolic links, so that each directory has exactly one path. */
  readonly path: string;
  /**
   * True if the directory is in memory: after a reboot it is empty, and fences start again at 1.
   */
  readonly inMemory: boolean;
}

/** Creates the directory if it is missing. Throws if it cannot be used for locks. */
export function lockDirectory(given: string): LockDirectory {
  try {
    mkdirSync(given, { recursive: true });
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code !== "EEXIST" && code !== "ENOTDIR") throw cause;
    throw noDirectory(given);
  }
  return usable(given);
}

/** Returns the directory; undefined if it is missing. Throws if it cannot be used for locks. */
export function existingLockDirectory(given: string): LockDirectory | undefined {
  try {
    return usable(given);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    throw code === "ENOTDIR" ? noDirectory(given) : cause;
  }
}

function usable(given: string): LockDirectory {
  const path = realpathSync(given);
  if (!statSync(path).isDirectory()) throw noDirectory(given);
  accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
  // The type numbers above are those of Linux. Other systems use other numbers, so the type of the
  // file system is not checked there.
  const type = process.platform === "linux" ? statfsSync(path).type : 0;
  refuseShared(path, type);
  return { path, inMemory: memoryFileSystems.has(type) };
}

function noDirectory(given: string): InvalidOptionError {
  return new InvalidOptionError("directory", "a directory", given);
}

export function refuseShared(path: string, type: number): void {
  // `>>> 0`, because some systems report the type as a negative number.
  const shared = sharedFileSystems.get(type >>> 0);
  if (shared === undefined) return;
  throw new UnsupportedError(
    `${path} is on ${shared}, which other machines may share: the embedded store locks between ` +
      "processes of one machine only. Use a directory on a local disk",
  );
}
