import { readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { StoreError } from "../../core/errors.ts";

export const databaseName = "locks.mdb";
const lockName = `${databaseName}-lock`;
const bootPrefix = "boot-";

/**
 * Returns the folder of one boot of the machine. Each boot has its own database, which therefore
 * contains no locks of earlier boots.
 */
export function bootFolder(directory: string, bootId: string | undefined): string {
  return join(directory, bootPrefix + (bootId ?? "unknown"));
}

export function otherBoots(directory: string, ownFolder: string): readonly string[] {
  return readdirSync(directory)
    .filter((name) => name.startsWith(bootPrefix))
    .map((name) => join(directory, name))
    .filter((folder) => folder !== ownFolder);
}

/**
 * Throws if a running process uses one of `folders`. A folder in use does not belong to an earlier
 * boot, but to a container with its own boot id. Each process checks after it has opened its own
 * database: if two processes start at the same moment, at least one of them finds the other.
 */
export function refuseLiveBoots(folders: readonly string[], ownFolder: string): void {
  const locks = lockedFiles();
  const ownInode = inodeOf(ownFolder);
  // /proc/locks may show another file system id than `stat`. So the id is taken from the entry of
  // this process in /proc/locks.
  const own = locks.find(({ inode, pid }) => inode === ownInode && pid === String(process.pid));
  if (own === undefined) return;
  for (const folder of folders) {
    const inode = inodeOf(folder);
    if (inode === undefined) continue;
    if (!locks.some((lock) => lock.inode === inode && lock.device === own.device)) continue;
    throw new StoreError(
      `${folder} is in use by a running process that sees another boot id, as in a container ` +
        "with one of its own: the two could not know when each other's locks are void. " +
        "Give each its own directory, or the same boot id",
    );
  }
}

export function removeBoots(folders: readonly string[]): void {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}

function inodeOf(folder: string): string | undefined {
  return statSync(join(folder, lockName), { throwIfNoEntry: false, bigint: true })?.ino.toString();
}

interface FileLock {
  readonly pid: string;
  readonly device: string;
  readonly inode: string;
}

/**
 * Returns the file locks of all processes (on Linux only). LMDB locks its lock file while the
 * database is open.
 */
function lockedFiles(): readonly FileLock[] {
  let text: string;
  try {
    text = readFileSync("/proc/locks", "utf8");
  } catch {
    return [];
  }
  // Example of a line: 1: POSIX ADVISORY READ 4242 fd:00:1234567 0 0
  return [...text.matchAll(/ (-?\d+) ([0-9a-f]+:[0-9a-f]+):(\d+) \d+ \w+$/gm)].map((match) => ({
    pid: match[1] ?? "",
    device: match[2] ?? "",
    inode: match[3] ?? "",
  }));
}
