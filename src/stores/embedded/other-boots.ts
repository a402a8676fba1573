import { readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { StoreError } from "../../core/errors.ts";

export const databaseName = "locks.mdb";
const lockName = `${databaseName}-lock`;
const bootPrefix = "boot-";

/** The folder of a boot. Each has a database of its own, so that nothing of an old one counts. */
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
 * Throws if a process of the running system uses one of `folders`: then they are not of an earlier
 * boot, but of a container that is shown a boot id of its own. Each side looks after it has opened
 * its own database, so of two that come at the same moment at least one sees the other.
 */
export function refuseLiveBoots(folders: readonly string[], ownFolder: string): void {
  const locks = lockedFiles();
  const ownInode = inodeOf(ownFolder);
  // The kernel's name for a file system is not always that of `stat`. Our own lock tells it.
  const own = locks.find(({ inode, pid }) => inode === ownInode && pid === String(process.pid));
  if (own === undefined) return;
  for (const folder of folders) {
    const inode = inodeOf(folder);
    if (inode === undefined) continue;
    if (!locks.some((lock) => lock.inode === inode && lock.device === own.device)) continue;
    throw new StoreError(
      `${folder} is in use by a running process that sees another boot id, as in a container ` +
        "with one of its own: the two could not tell when each other's locks are void. " +
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

/** LMDB locks its lock file for as long as it is open. Linux lists the locks of all processes. */
function lockedFiles(): readonly FileLock[] {
  let text: string;
  try {
    text = readFileSync("/proc/locks", "utf8");
  } catch {
    return [];
  }
  // 1: POSIX  ADVISORY  READ 4242 fd:00:1234567 0 0
  return [...text.matchAll(/ (-?\d+) ([0-9a-f]+:[0-9a-f]+):(\d+) \d+ \w+$/gm)].map((match) => ({
    pid: match[1] ?? "",
    device: match[2] ?? "",
    inode: match[3] ?? "",
  }));
}
